"""Generated code: plugin functions wired by parameter name, lowered, compiled and cached under a hash of all that they reach.

Why a cache of our own around Numba's: Numba keys a cached function by its own bytecode, so an edited helper in another module is served
stale. Here every compiled text lies in a file named by a hash over the text, the bytecode and constants of everything that it reaches
(transitively, through globals, modules, closures and defaults), the versions of Numba, LLVM, NumPy and Python, what the environment tells
Numba, and the CPU. The cache folder belongs to the user alone.
"""

from __future__ import annotations

import builtins
import dis
import enum
import hashlib
import inspect
import linecache
import re
import sys
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

from bellmark.errors import BellmarkError, PluginError, did_you_mean, known_list

_PINNED = ("builtins", "cmath", "math", "numba", "numpy", "operator")  # modules that a version in the key stands for
_OPTIONS = ("BOUNDSCHECK", "CPU_FEATURES", "CPU_NAME", "DEBUGINFO_DEFAULT", "ENABLE_AVX", "LOOP_VECTORIZE", "OPT", "SLP_VECTORIZE")
_SCALARS = (bool, int, float, complex, str, bytes, type(None), np.generic)


@lru_cache(maxsize=1)
def cpu_name() -> str:
    """The CPU that code is compiled for, with its features hashed."""
    from numba.core.registry import cpu_target

    codegen = cpu_target.target_context.codegen()
    name, features = codegen._get_host_cpu_name(), codegen._get_host_cpu_features()
    return f"{name}-{hashlib.sha256(features.encode()).hexdigest()[:8]}"


def lower(function: Callable[..., Any]) -> Any:
    """A plain Python function as a Numba function; the plain functions that it calls are lowered with it.

    A Numba function passes through. Constants are taken as they are now: the next run sees an edited helper or constant.
    """
    return _lower(function, {})


@dataclass(frozen=True)
class Inlined:
    """A function that the compiler is to put into the loop that calls it whatever its size: one that runs once a bar."""

    function: Callable[..., Any]


# Functions lowered for generated code, by a hash of all that they reach: kernels of one process share their helpers' compiled code.
_SHARED: dict[tuple[str, str, str, bool], Any] = {}
_INNER: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, "_nrt": False}  # called from compiled code alone


def _inner(function: Any, done: dict[Any, Any]) -> Any:
    """A function as generated code calls it: without the wrappers for a caller in Python, and compiled once a process."""
    inlined = isinstance(function, Inlined)
    if isinstance(function, LazyKernel | Inlined):
        function = function.function
    if not isinstance(function, types.FunctionType):
        return function
    key = (fingerprint([function]), function.__module__, function.__qualname__, inlined)
    if key not in _SHARED:
        _SHARED[key] = _lower(function, {} if inlined else done, _INNER | {"forceinline": inlined})
    return _SHARED[key]


def _lower(function: Any, done: dict[Any, Any], options: dict[str, Any] | None = None) -> Any:
    if isinstance(function, Dispatcher):
        return function
    if not isinstance(function, types.FunctionType):
        raise PluginError(f"{_label(function)}: expected a plain Python function, found {type(function).__name__}")
    if function in done:
        if done[function] is None:
            raise PluginError(f"{_label(function)}: it calls itself; recursion cannot be compiled")
        return done[function]
    done[function] = None
    reached = _reached(function)
    inner = _inner if options else _lowered
    scope = {name: inner(value, done) for name, value in reached.items()}
    scope["__name__"] = function.__module__
    scope["__builtins__"] = builtins
    closure = function.__closure__
    if closure:
        closure = tuple(
            types.CellType(_lower(cell.cell_contents, done)) if isinstance(cell.cell_contents, types.FunctionType) else cell
            for cell in closure
        )
    copy = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, closure)
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    done[function] = numba.njit(error_model="numpy", **(options or {}))(copy)
    return done[function]


def _lowered(value: Any, done: dict[Any, Any]) -> Any:
    if isinstance(value, LazyKernel):
        value = value.function
    return _lower(value, done) if isinstance(value, types.FunctionType) else value


def fingerprint(values: Iterable[Any], names: Iterable[str] = ()) -> str:
    """A hash over functions and constants and all that they reach. `names`: attributes that are read of modules among the values."""
    digest = hashlib.sha256()
    seen: dict[int, Any] = {}
    for value in values:
        _feed(digest, value, seen, frozenset(names))
    return digest.hexdigest()


def _feed(digest: Any, value: Any, seen: dict[int, Any], names: frozenset[str] = frozenset()) -> None:
    if isinstance(value, LazyKernel | Inlined):
        digest.update(type(value).__name__.encode())
        value = value.function
    if isinstance(value, Dispatcher):
        digest.update(repr(sorted(value.targetoptions.items())).encode())
        value = value.py_func
    if isinstance(value, types.FunctionType):
        _feed_function(digest, value, seen)
    elif isinstance(value, types.ModuleType):
        _feed_module(digest, value, seen, names)
    elif isinstance(value, type) and issubclass(value, enum.Enum):
        _feed(digest, [(member.name, member.value) for member in value], seen)
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    elif isinstance(value, tuple | list):
        digest.update(f"{len(value)}".encode())
        for item in value:
            _feed(digest, item, seen, names)
    elif isinstance(value, np.generic):  # the sign of zero and the payload of NaN count, so bytes and not text
        digest.update(f"{value.dtype}".encode() + value.tobytes())
    elif isinstance(value, _SCALARS):
        digest.update(f"{type(value).__name__}:{value!r}".encode())
    elif hasattr(value, "_defn"):  # a Numba intrinsic: its code generator is the definition
        _feed(digest, value._defn, seen)
    else:  # types of Numba and NumPy say in their text what they are; an address in it says nothing
        text = "" if " at 0x" in repr(value) else repr(value)
        digest.update(f"{type(value).__module__}.{getattr(value, '__qualname__', type(value).__qualname__)} {text}".encode())


def _feed_function(digest: Any, function: types.FunctionType, seen: dict[int, Any]) -> None:
    # By function, not by code: two closures of one maker share their code and nothing else.
    if id(function) in seen:
        digest.update(b"again")
        return
    seen[id(function)] = function
    digest.update(str(function.__module__).encode())  # what Numba stores of a function names its module: the same text elsewhere is another
    _feed_code(digest, function.__code__)
    _feed(digest, function.__defaults__ or (), seen)
    _feed(digest, sorted((function.__kwdefaults__ or {}).items()), seen)
    names = frozenset(_attribute_names(function.__code__))
    for name, reached in sorted(_reached(function).items()):
        digest.update(name.encode())
        _feed(digest, reached, seen, names)
    for cell in function.__closure__ or ():
        _feed(digest, cell.cell_contents, seen, names)


def _feed_module(digest: Any, module: types.ModuleType, seen: dict[int, Any], names: frozenset[str]) -> None:
    """A module's name and whatever of it the function may read; Numba freezes `module.CONSTANT` into the code."""
    digest.update(module.__name__.encode())
    if module.__name__.partition(".")[0] in _PINNED or id(module) in seen:
        return
    seen[id(module)] = module
    for name in sorted(names & vars(module).keys()):
        digest.update(name.encode())
        _feed(digest, vars(module)[name], seen, names)


@lru_cache(maxsize=4096)
def _attribute_names(code: types.CodeType) -> frozenset[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return frozenset(code.co_names).union(*(_attribute_names(constant) for constant in inner))


def _feed_code(digest: Any, code: types.CodeType) -> None:
    digest.update(code.co_code + repr((code.co_names, code.co_varnames, code.co_freevars)).encode())
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _feed_code(digest, constant)
        else:  # the order of a set of texts changes from process to process
            text = sorted(map(repr, constant)) if isinstance(constant, frozenset) else repr(constant)
            digest.update(f"{type(constant).__name__}:{text}".encode())


def _reached(function: types.FunctionType) -> dict[str, Any]:
    names = _global_names(function.__code__)
    return {name: function.__globals__[name] for name in sorted(names) if name in function.__globals__}


@lru_cache(maxsize=4096)  # a code object never changes; an edited function has another
def _global_names(code: types.CodeType) -> frozenset[str]:
    names = {item.argval for item in dis.get_instructions(code) if item.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _global_names(constant)
    return frozenset(names)


def parameters(function: Callable[..., Any]) -> list[str]:
    """The parameter names of a function that is wired by name."""
    plain = function.py_func if isinstance(function, Dispatcher) else function
    return list(inspect.signature(plain).parameters)


def call_text(function: Callable[..., Any], available: dict[str, str], where: str) -> str:
    """The argument text of a call wired by name: for `f(t, close_T)` the expressions that `available` has for `t` and `close_T`."""
    wanted = parameters(function)
    for name in wanted:
        if name not in available:
            raise PluginError(f"{where}: no argument named '{name}'{did_you_mean(name, available)}{known_list(available, 60)}")
    return ", ".join(available[name] for name in wanted)


class LazyKernel:
    """A kernel that is hashed, compiled and cached at its first call, so that importing a module compiles nothing."""

    def __init__(self, function: Callable[..., Any], parallel: bool) -> None:
        self.function = function
        self.parallel = parallel
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self._compiled: Any = None

    @property
    def compiled(self) -> Any:
        """The Numba function."""
        if self._compiled is None:
            source = inspect.getsource(self.function)
            start = source.index("def ")
            text = "from __future__ import annotations\n\ndef entry" + source[start + 4 + len(self.function.__name__) :]
            symbols = _reached(self.function)  # type: ignore[arg-type]
            self._compiled = build(self.function.__name__, text, symbols, parallel=self.parallel)
        return self._compiled

    def __call__(self, *arguments: Any) -> Any:
        return self.compiled(*arguments)


def build(name: str, text: str, symbols: dict[str, Any], *, parallel: bool = False) -> Any:
    """Compiles generated text that defines one function `entry` and returns it.

    `symbols` are the functions and constants that the text names. Plain functions are lowered. The result compiles at its first call and
    is cached on disk; where the cache folder cannot be written it is compiled anew in each process.
    """
    from bellmark.files import cache_folder, write_atomically

    key = hashlib.sha256()
    versions = (numba.__version__, llvmlite.__version__, np.__version__, sys.version_info[:3])
    options = [getattr(numba.config, name, None) for name in _OPTIONS]
    key.update(f"{versions} {options} {cpu_name()} {parallel}\n{text}".encode())
    names = re.findall(r"\w+", text)
    for symbol, value in sorted(symbols.items()):
        key.update(symbol.encode())
        key.update(fingerprint([value], names).encode())
    stem = f"{name}_{key.hexdigest()[:24]}"
    module_name = f"bellmark_generated_{stem}"
    if module_name in sys.modules:
        return sys.modules[module_name].entry  # type: ignore[attr-defined]
    path = cache_folder("code") / f"{stem}.py"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        write_atomically(path, text)
    module = types.ModuleType(module_name)
    module.__file__ = str(path)
    done: dict[Any, Any] = {}
    for symbol, value in symbols.items():
        module.__dict__[symbol] = _inner(value, done)
    linecache.cache[str(path)] = (len(text), None, text.splitlines(keepends=True), str(path))
    exec(builtins.compile(text, str(path), "exec"), module.__dict__)  # noqa: S102  the text is generated here, never read
    module.entry = numba.njit(error_model="numpy", nogil=True, cache=True, parallel=parallel)(module.entry)  # type: ignore[attr-defined]
    sys.modules[module_name] = module
    return module.entry  # type: ignore[attr-defined]


def compile_error(error: Exception, where: str) -> BellmarkError:
    """Numba's many lines as one: where it happened and the line that says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    cause = next((line for line in lines if line.startswith(("Unknown attribute", "Untyped global", "Use of unsupported", "Cannot unify",
                                                               "No implementation", "Invalid use", "name '", "NameError"))), "")
    noise = ("Failed in", "During:", "File ", "<source", "Enable logging", "Traceback", "[", "-", "^")
    said = (line for line in lines if not line.startswith(noise))
    cause = cause or next(said, lines[-1] if lines else type(error).__name__)
    places = re.findall(r'File "([^"]+)", line (\d+)', str(error))
    mine = [(file, int(line)) for file, line in places if _generated(file) is None]
    call = next((found for file, line in places if (found := _call_before(file, int(line)))), "")
    place = f" ({mine[0][0]}, line {mine[0][1]})" if mine else ""
    return PluginError(f"{where}: {call + ': ' if call else ''}it does not compile: {cause.rstrip(':')}{place}")


def _generated(file: str) -> Any:
    """The module of a file of generated code, if it is one."""
    return sys.modules.get(f"bellmark_generated_{Path(file).stem}")


def _call_before(file: str, line: int) -> str:
    """Which component's function a line of generated code calls, or the nearest such line above it, whose result it takes."""
    module = _generated(file)
    if module is None:
        return ""
    for text in reversed(linecache.getlines(module.__file__)[:line]):
        for name in re.findall(r"(\w+)\(", text):
            function = getattr(module.__dict__.get(name), "py_func", None)
            if function is not None and "." in function.__qualname__:  # a component's: the engine's helpers stand alone
                return f"function '{function.__qualname__}' of {function.__module__}, called as '{text.strip()}'"
    return ""


def _label(function: Any) -> str:
    return f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', function)}"
