"""The CPU backend: compiles the engine's kernels, holds BLAS at one thread and sets the number of threads.

One thread pool only. With BLAS at two threads inside two Numba threads a training step took 70 ms instead of 1, so BLAS is pinned to one
thread for the whole process, and kernels cut their work in fixed tiles: bits depend neither on the number of threads nor on L.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

# Waiting threads of OpenMP sleep after about 1 us. By default they spin for milliseconds, which made a step 6 times slower wherever
# another process wanted a core. It must be set before the thread pool loads; a value of the user's own stays.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")

import numba
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from bellmark import codegen

_blas: list[Any] = []


def inline(function: Callable[..., Any] | None = None, *, always: bool = False) -> Any:
    """A helper that kernels of this process call: compiled without fast-math, division as NumPy does it.

    `always` makes LLVM inline it whatever its size: a loop around a large elementwise helper vectorises only then.
    """
    if function is None:
        return lambda inner: inline(inner, always=always)
    return numba.njit(error_model="numpy", forceinline=always)(function)


@intrinsic
def unlikely(typing_context, condition):  # type: ignore[no-untyped-def]
    """A condition that is hardly ever true: the compiler keeps what the other path needs in registers. The value is the condition's own."""

    def codegen_of(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        flag = builder.icmp_unsigned("!=", arguments[0], arguments[0].type(0))
        expect = builder.module.declare_intrinsic("llvm.expect", [flag.type], ir.FunctionType(flag.type, [flag.type, flag.type]))
        return context.cast(builder, builder.call(expect, [flag, flag.type(0)]), types.boolean, types.boolean)

    return types.boolean(types.boolean), codegen_of


@intrinsic
def assume(typing_context, condition):  # type: ignore[no-untyped-def]
    """Tells the compiler that a condition always holds, so that it leaves out what the other case would need. It must hold."""

    def codegen_of(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        flag = builder.icmp_unsigned("!=", arguments[0], arguments[0].type(0))
        builder.call(builder.module.declare_intrinsic("llvm.assume", fnty=ir.FunctionType(ir.VoidType(), [flag.type])), [flag])
        return context.get_dummy_value()

    return types.none(types.boolean), codegen_of


def compile(function: Callable[..., Any] | None = None, *, parallel: bool = False) -> Any:
    """A kernel of the engine as a cached compiled function; usable as `@compile` or `@compile(parallel=True)`.

    It goes through the same cache as generated code: the key holds everything the function reaches, so an edited helper in another
    module is never served stale (Numba's own key sees the function alone).
    """
    if function is None:
        return lambda inner: compile(inner, parallel=parallel)
    return codegen.LazyKernel(function, parallel=parallel)


def single_blas_thread() -> None:
    """Pins every BLAS in the process to one thread, for good."""
    if not _blas:
        import scipy.linalg  # noqa: F401  its BLAS must be loaded before the limit is set
        from numba.np.linalg import ensure_blas
        from threadpoolctl import threadpool_limits

        ensure_blas()
        _blas.append(threadpool_limits(limits=1, user_api="blas"))


def threads(count: int | None = None) -> int:
    """Sets the number of threads of compiled parallel loops, if given, and returns it."""
    if count is not None:
        numba.set_num_threads(count)
    return int(numba.get_num_threads())


def build_id() -> dict[str, str]:
    """What decides the bits of a training run on this machine: Numba, its LLVM, the CPU, the BLAS and its kernel."""
    import llvmlite
    from threadpoolctl import threadpool_info

    single_blas_thread()
    blas = sorted(
        f"{info['internal_api']} {info.get('version')} {info.get('architecture', '')}".strip()
        for info in threadpool_info()
        if info["user_api"] == "blas"
    )
    return {
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "cpu": codegen.cpu_name(),
        "blas": "; ".join(dict.fromkeys(blas)),
    }
