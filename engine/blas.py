"""Matrix products on pieces of larger arrays: float32 GEMM with element offsets and leading dimensions, callable in parallel loops.

Calls the BLAS that SciPy brings, through Numba's own entry point, so it allocates nothing and can be cached. Arrays are row-major;
`stride` is the number of elements from one row to the next. BLAS itself must be held at one thread (`backend.single_blas_thread`):
with two it took 10 ms where one thread takes 0.24.

Offsets count elements from the start of the whole array. No kernel checks them: they come from the network's layout table only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.linalg import ensure_blas

from bellmark import backend

ensure_blas()  # registers the symbol that compiled and cached code links against

_PLAIN, _TRANSPOSED = np.int8(ord("n")), np.int8(ord("t"))
ONE, ZERO = np.float32(1.0), np.float32(0.0)


@intrinsic  # type: ignore[untyped-decorator]
def sgemm(typing_context: Any, ta: Any, tb: Any, m: Any, n: Any, k: Any, alpha: Any, a: Any, a_at: Any, lda: Any, b: Any, b_at: Any,
          ldb: Any, beta: Any, c: Any, c_at: Any, ldc: Any) -> Any:  # fmt: skip
    """Column-major C = alpha op(A) op(B) + beta C on arrays that start at an element offset (BLAS sgemm)."""
    signature = types.int32(ta, tb, m, n, k, alpha, a, a_at, lda, b, b_at, ldb, beta, c, c_at, ldc)

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds = signature.args
        byte, word, pointer = ir.IntType(8), ir.IntType(64), ir.IntType(8).as_pointer()

        def integer(position: int) -> Any:
            return context.cast(builder, arguments[position], kinds[position], types.int64)

        def letter(position: int) -> Any:
            return context.cast(builder, arguments[position], kinds[position], types.int8)

        def scalar(position: int) -> Any:
            value = context.cast(builder, arguments[position], kinds[position], types.float32)
            return builder.bitcast(cgutils.alloca_once_value(builder, value), pointer)

        def address(position: int) -> Any:
            array = context.make_array(kinds[position])(context, builder, arguments[position])
            return builder.bitcast(builder.gep(array.data, [integer(position + 1)]), pointer)

        kind = ir.FunctionType(
            ir.IntType(32), [byte, byte, byte, word, word, word, pointer, pointer, word, pointer, word, pointer, pointer, word]
        )
        function = cgutils.get_or_insert_function(builder.module, kind, "numba_xxgemm")
        return builder.call(
            function,
            [ir.Constant(byte, ord("s")), letter(0), letter(1), integer(2), integer(3), integer(4), scalar(5), address(6), integer(8),
             address(9), integer(11), scalar(12), address(13), integer(15)],
        )  # fmt: skip

    return signature, generate


@backend.inline
def multiply(x, x_at, x_stride, w, w_at, w_stride, y, y_at, y_stride, rows, inner, columns):
    """Y (rows, columns) = X (rows, inner) W (inner, columns): the forward product of a layer."""
    # A row-major matrix is the transpose of a column-major one, so Y^T = W^T X^T is asked for.
    return sgemm(_PLAIN, _PLAIN, columns, rows, inner, ONE, w, w_at, w_stride, x, x_at, x_stride, ZERO, y, y_at, y_stride)  # type: ignore[call-arg]


@backend.inline
def multiply_transposed(dy, dy_at, dy_stride, w, w_at, w_stride, dx, dx_at, dx_stride, rows, inner, columns):
    """dX (rows, inner) = dY (rows, columns) W^T: the gradient with respect to a layer's input."""
    return sgemm(_TRANSPOSED, _PLAIN, inner, rows, columns, ONE, w, w_at, w_stride, dy, dy_at, dy_stride, ZERO, dx, dx_at, dx_stride)  # type: ignore[call-arg]


@backend.inline
def multiply_rows(x, x_at, x_stride, dy, dy_at, dy_stride, dw, dw_at, dw_stride, rows, inner, columns):
    """dW (inner, columns) = X^T dY over `rows` rows: the gradient of a block of `inner` weight rows, given where X's block starts."""
    return sgemm(_PLAIN, _TRANSPOSED, columns, inner, rows, ONE, dy, dy_at, dy_stride, x, x_at, x_stride, ZERO, dw, dw_at, dw_stride)  # type: ignore[call-arg]
