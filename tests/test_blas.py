"""Matrix products on pieces of arrays against NumPy in float64."""

import numpy as np
import pytest
from numba import prange

from bellmark import backend
from bellmark.blas import multiply, multiply_rows, multiply_transposed

pytestmark = pytest.mark.cpu
SHAPES = [(1, 1, 1, 1), (5, 20, 24, 24), (32, 64, 616, 616), (31, 7, 13, 16), (64, 256, 256, 256)]


@backend.compile
def products(x, x_at, w, w_at, y, dy, dx, dw, rows, inner, columns, stride, first, block):
    multiply(x, x_at, inner, w, w_at, stride, y, 0, stride, rows, inner, columns)
    multiply_transposed(dy, 0, stride, w, w_at, stride, dx, 0, inner, rows, inner, columns)
    multiply_rows(x, x_at + first, inner, dy, 0, stride, dw, first * stride, stride, rows, block, columns)


@backend.compile(parallel=True)
def tiles(x, w, y, tile):
    rows, inner, columns = x.shape[0], x.shape[1], w.shape[1]
    for task in prange((rows + tile - 1) // tile):
        first = task * tile
        multiply(x, first * inner, inner, w, 0, columns, y, first * columns, columns, min(tile, rows - first), inner, columns)


@pytest.mark.parametrize(("rows", "inner", "columns", "stride"), SHAPES)
def test_products_with_offsets_and_strides_equal_numpy_and_write_nothing_else(rows, inner, columns, stride):
    backend.single_blas_thread()
    random = np.random.default_rng(rows)
    x_at, w_at = 3, 5
    x, w = random.standard_normal(x_at + rows * inner).astype("f4"), random.standard_normal(w_at + inner * stride).astype("f4")
    dy = random.standard_normal((rows, stride)).astype("f4")
    y, dx, dw = (np.full(shape, np.nan, "f4") for shape in ((rows, stride), (rows, inner), (inner, stride)))
    first, block = inner // 3, max(1, inner // 2)
    products(x, x_at, w, w_at, y, dy, dx, dw, rows, inner, columns, stride, first, block)
    matrix_x, matrix_w = x[x_at:].reshape(rows, inner).astype("f8"), w[w_at:].reshape(inner, stride)[:, :columns].astype("f8")
    matrix_dy = dy[:, :columns].astype("f8")
    for found, expected in ((y[:, :columns], matrix_x @ matrix_w), (dx, matrix_dy @ matrix_w.T)):
        assert np.abs(found - expected).max() <= 1e-5 * max(1.0, np.abs(expected).max())
    expected = matrix_x.T @ matrix_dy
    assert np.abs(dw[first : first + block, :columns] - expected[first : first + block]).max() <= 1e-5 * max(1.0, np.abs(expected).max())
    assert np.isnan(y[:, columns:]).all()
    assert np.isnan(dw[:first]).all()
    assert np.isnan(dw[first + block :]).all()


def test_gradients_of_1_and_256_sum_to_257():
    x, dy, w = np.ones((2, 1), "f4"), np.array([[256.0], [1.0]], "f4"), np.ones((1, 1), "f4")
    y, dx, dw = np.empty((2, 1), "f4"), np.empty((2, 1), "f4"), np.empty((1, 1), "f4")
    products(x, 0, w, 0, y, dy, dx, dw, 2, 1, 1, 1, 0, 1)
    assert dw[0, 0] == 257.0


def test_nan_in_an_unused_result_does_not_leak_and_nan_in_an_input_travels():
    x, w, y = np.ones((4, 3), "f4"), np.ones((3, 5), "f4"), np.full((4, 5), np.nan, "f4")
    tiles(x, w, y, 2)
    assert np.all(y == 3.0)
    x[2, 1] = np.nan
    w[:] = 0.0
    tiles(x, w, y, 2)
    assert np.isnan(y[2]).all()
    assert np.all(y[[0, 1, 3]] == 0.0)


def test_tiles_give_the_same_bits_with_any_number_of_threads():
    backend.single_blas_thread()
    random = np.random.default_rng(1)
    x, w = random.standard_normal((100, 64)).astype("f4"), random.standard_normal((64, 616)).astype("f4")
    results = []
    for count in (1, 2):
        backend.threads(count)
        y = np.empty((100, 616), "f4")
        tiles(x, w, y, 32)
        results.append(y.tobytes())
    assert results[0] == results[1]
