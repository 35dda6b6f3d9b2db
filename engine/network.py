"""The Q network of every learner: a trunk of linear layers and one merged dueling head, forward and backward, driven by a layout table.

All parameters of a learner lie in one row of `parameter_LP` (the target network's in `target_LP`); the table `layout_YE` says where each
layer's weights and biases are, so one compiled kernel serves every shape. Weights are row-major (inputs, outputs): y = x W + b. The number
of outputs is padded to a multiple of 8; padded weights and biases are zero and stay zero, since their gradient is exactly zero.

Head: with dueling, outputs are a value of Z numbers followed by D columns of Z; without, the D columns alone. Branch k owns the columns
branch_start_K[k] .. + branch_size_K[k], and (Wang et al. 2016, Tavakoli et al. 2018)

    logit[d, z] = V[z] + A[d, z] - mean over the columns d' of d's branch of A[d', z]

over all columns of the branch: a mask plays no part. Work is cut in tiles of 32 to 128 rows (a function of the batch alone) that run
through the whole network, so bits depend neither on the number of threads nor on the number of learners. All arithmetic is float32.
GELU is the exact one (erf).

Suffixes beside the usual: R rows of all learners (L x B), X units of all trunk layers, U head outputs, Y layers, E fields of the table,
G blocks of the weight gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark import backend, elementary, rng
from bellmark.actions import ActionSpace
from bellmark.blas import multiply, multiply_rows, multiply_transposed
from bellmark.buffers import BufferRegistry
from bellmark.codegen import lower
from bellmark.errors import UsageError, did_you_mean, known_list

TILE, LARGEST_TILE = 32, 128  # rows of a tile
PADDING = 8  # outputs of a layer are padded to a multiple of this
BLOCK_WORK = 40_000  # weights of one block of the weight gradient, about 1/15 ms at batch 64
LINEAR, RELU, GELU = 0, 1, 2
ACTIVATIONS = {"relu": RELU, "gelu": GELU}
INPUTS, OUTPUTS, STRIDE, WEIGHT, BIAS, ACTIVATION, UNIT = range(7)  # fields of layout_YE
FIELDS = 7

_ZERO, _ONE, _HALF = np.float32(0.0), np.float32(1.0), np.float32(0.5)
_SQRT_HALF, _INVERSE_SQRT_TWO_PI = np.float32(0.7071067811865476), np.float32(0.3989422804014327)
_exp32, _erf32 = lower(elementary.exp32), lower(elementary.erf32)


@dataclass(frozen=True)
class Layer:
    """One linear layer: sizes, padded row length, and offsets of its parts in a learner's row of parameters and of trunk units."""

    inputs: int
    outputs: int
    stride: int
    weight: int
    bias: int
    activation: int
    unit: int


@dataclass(frozen=True)
class Network:
    """The shape of the network of a run. `outputs` is Z: atoms of a distribution, or 1."""

    observation: int
    hidden: tuple[int, ...]
    activation: str
    dueling: bool
    columns: int
    outputs: int

    def __post_init__(self) -> None:
        if self.activation not in ACTIVATIONS:
            raise UsageError(
                f"network.activation: no '{self.activation}'{did_you_mean(self.activation, ACTIVATIONS)}{known_list(ACTIVATIONS)}"
            )
        if not self.hidden or min(self.hidden) < 1:
            raise UsageError(f"network.hidden: expected at least one layer of at least 1 unit, found {list(self.hidden)}")

    @cached_property
    def layers(self) -> tuple[Layer, ...]:
        """Trunk layers, then the head."""
        layers, inputs, offset, unit = [], self.observation, 0, 0
        head = (self.columns + self.dueling) * self.outputs
        for position, outputs in enumerate((*self.hidden, head)):
            stride = -(-outputs // PADDING) * PADDING
            last = position == len(self.hidden)
            bias = offset + inputs * stride
            layers.append(Layer(inputs, outputs, stride, offset, bias, LINEAR if last else ACTIVATIONS[self.activation], unit))
            offset, unit, inputs = bias + stride, unit + stride, outputs
        return tuple(layers)

    @property
    def parameters(self) -> int:
        """P, padding included."""
        return self.layers[-1].bias + self.layers[-1].stride

    @property
    def units(self) -> int:
        """X: units of all trunk layers, padding included."""
        return self.layers[-1].unit

    @property
    def head(self) -> int:
        """U: outputs of the head, padding included."""
        return self.layers[-1].stride

    def layout(self) -> NDArray[np.int64]:
        """The table layout_YE."""
        return np.array(
            [[a.inputs, a.outputs, a.stride, a.weight, a.bias, a.activation, a.unit] for a in self.layers], np.int64
        )

    def blocks(self) -> NDArray[np.int64]:
        """The table block_GE: (layer, first weight row, rows) of each piece of the weight gradient, in a fixed order."""
        pieces = []
        for position, layer in enumerate(self.layers):
            count = max(1, round(layer.inputs * layer.stride / BLOCK_WORK))
            edges = [layer.inputs * piece // count for piece in range(count + 1)]
            pieces += [[position, first, last - first] for first, last in zip(edges[:-1], edges[1:], strict=True)]
        return np.array(pieces, np.int64)

    def views(self, parameter_P: NDArray[np.float32]) -> dict[str, NDArray[np.float32]]:
        """Named views of one learner's row: `layer0.weight` (inputs, outputs), `layer0.bias`, ..., `head.weight`, `head.bias`."""
        named = {}
        for position, layer in enumerate(self.layers):
            name = "head" if position == len(self.hidden) else f"layer{position}"
            weight = parameter_P[layer.weight : layer.weight + layer.inputs * layer.stride].reshape(layer.inputs, layer.stride)
            named[f"{name}.weight"] = weight[:, : layer.outputs]
            named[f"{name}.bias"] = parameter_P[layer.bias : layer.bias + layer.outputs]
        return named

    def initialise(self, parameter_LP: NDArray[np.float32], seeds: Sequence[int]) -> None:
        """Weights and biases uniform in +-1/sqrt(inputs), drawn from Philox (learner seed, INIT); word i makes parameter i."""
        parameter_LP[:] = 0.0
        for row, seed in zip(parameter_LP, seeds, strict=True):
            words = rng.words(seed, rng.STREAM_INIT, np.arange(-(-self.parameters // 4), dtype=np.uint64), 0, 0)
            uniform = rng.uniform(np.stack(words, axis=1)).ravel()[: self.parameters].astype(np.float32)
            drawn = self.views(uniform)
            for name, view in self.views(row).items():
                inputs = self.views(row)[name.split(".")[0] + ".weight"].shape[0]
                view[:] = (np.float32(2.0) * drawn[name] - _ONE) * np.float32(inputs**-0.5)


def declare_parameters(registry: BufferRegistry, network: Network, learners: int) -> None:
    """The parameters that acting and learning share, and the layout table."""
    registry.declare("parameter_LP", "master_weight", (learners, network.parameters))
    registry.declare("layout_YE", "layout", (len(network.layers), FIELDS))


def declare_head(registry: BufferRegistry, space: ActionSpace) -> None:
    """The tables that say how head columns make joint actions."""
    registry.declare("head_column_AK", "index", (space.A, space.K))
    registry.declare("branch_start_K", "index", (space.K,))
    registry.declare("branch_size_K", "index", (space.K,))


def fill_tables(registry: BufferRegistry, network: Network, space: ActionSpace) -> None:
    """Writes the tables of `declare_parameters` and `declare_head`."""
    registry["layout_YE"][:] = network.layout()
    registry["head_column_AK"][:] = space.column_AK
    registry["branch_start_K"][:] = space.branch_start_K
    registry["branch_size_K"][:] = space.branch_size_K


TABLES = ("layout_YE", "head_column_AK", "branch_start_K", "branch_size_K")


def declare_pass(registry: BufferRegistry, network: Network, prefix: str, learners: int, rows: int, suffix: str) -> dict[str, str]:
    """The buffers of one forward pass over `rows` rows a learner: before and after each activation, the raw head, the logits."""
    names = {
        "before": (f"{prefix}before_L{suffix}X", "activation", (learners, rows, network.units)),
        "after": (f"{prefix}after_L{suffix}X", "activation", (learners, rows, network.units)),
        "head": (f"{prefix}head_L{suffix}U", "activation", (learners, rows, network.head)),
        "logit": (f"{prefix}logit_L{suffix}DZ", "logit", (learners, rows, network.columns, network.outputs)),
    }
    for name, role, shape in names.values():
        registry.declare(name, role, shape)
    return {key: value[0] for key, value in names.items()}


@backend.inline
def tile_rows(rows):
    """Rows of a tile for a batch of `rows`: at least four tiles where they stay large, since BLAS packs the weights anew for each."""
    tile = TILE
    while tile < LARGEST_TILE and tile * 8 <= rows:
        tile *= 2
    return tile


@backend.inline(always=True)
def gelu(x):
    """x Phi(x), with the exact normal distribution function."""
    return _HALF * x * (_ONE + _erf32(x * _SQRT_HALF))


@backend.inline(always=True)
def gelu_slope(x):
    """d gelu / dx = Phi(x) + x phi(x)."""
    return _HALF * (_ONE + _erf32(x * _SQRT_HALF)) + x * _INVERSE_SQRT_TWO_PI * _exp32(-_HALF * x * x)


@backend.inline
def activate(before_RX, after_RX, parameter_LP, learner, first, last, unit, stride, bias, activation):
    """Adds the bias to `before` in place and writes the activation to `after`. NaN passes."""
    for row in range(first, last):
        before = before_RX[row, unit : unit + stride]
        after = after_RX[row, unit : unit + stride]
        shift = parameter_LP[learner, bias : bias + stride]
        if activation == RELU:
            for j in range(stride):
                x = before[j] + shift[j]
                before[j] = x
                after[j] = _ZERO if x < _ZERO else x
        else:
            for j in range(stride):
                x = before[j] + shift[j]
                before[j] = x
                after[j] = gelu(x)


@backend.inline
def forward_tile(layout_YE, parameter_LP, learner, observation_RO, before_RX, after_RX, head_RU, first, last):
    """Rows first..last-1 through the whole network, up to the raw head."""
    rows, total, start = last - first, before_RX.shape[1], learner * parameter_LP.shape[1]
    layers = layout_YE.shape[0]
    for layer in range(layers):
        inputs, stride, unit = layout_YE[layer, INPUTS], layout_YE[layer, STRIDE], layout_YE[layer, UNIT]
        weight, bias = start + layout_YE[layer, WEIGHT], layout_YE[layer, BIAS]
        if layer == layers - 1:
            previous = layout_YE[layer - 1, UNIT]
            multiply(after_RX, first * total + previous, total, parameter_LP, weight, stride, head_RU, first * stride, stride,
                     rows, inputs, stride)  # fmt: skip
            for row in range(first, last):
                for j in range(stride):
                    head_RU[row, j] += parameter_LP[learner, bias + j]
            return
        if layer == 0:
            multiply(observation_RO, first * inputs, inputs, parameter_LP, weight, stride, before_RX, first * total + unit, total,
                     rows, inputs, stride)  # fmt: skip
        else:
            previous = layout_YE[layer - 1, UNIT]
            multiply(after_RX, first * total + previous, total, parameter_LP, weight, stride, before_RX, first * total + unit, total,
                     rows, inputs, stride)  # fmt: skip
        activate(before_RX, after_RX, parameter_LP, learner, first, last, unit, stride, bias, layout_YE[layer, ACTIVATION])


@backend.inline
def combine(head_RU, row, dueling, branch_start_K, branch_size_K, logit_RDZ):
    """From the raw head of one row to its logits."""
    columns, outputs = logit_RDZ.shape[1], logit_RDZ.shape[2]
    if not dueling:
        for d in range(columns):
            for z in range(outputs):
                logit_RDZ[row, d, z] = head_RU[row, d * outputs + z]
        return
    for k in range(branch_start_K.shape[0]):
        start, size = branch_start_K[k], branch_size_K[k]
        share = _ONE / np.float32(size)
        shift = logit_RDZ[row, start]  # holds the branch's sum, then V - mean, until its own column is written last
        for z in range(outputs):
            shift[z] = _ZERO
        for d in range(start, start + size):
            at = (1 + d) * outputs
            for z in range(outputs):
                shift[z] += head_RU[row, at + z]
        for z in range(outputs):
            shift[z] = head_RU[row, z] - shift[z] * share
        for d in range(start + size - 1, start - 1, -1):
            at = (1 + d) * outputs
            for z in range(outputs):
                logit_RDZ[row, d, z] = shift[z] + head_RU[row, at + z]


@backend.inline
def combine_backward(gradient_RDZ, row, dueling, branch_start_K, branch_size_K, head_gradient_RU):
    """From dL/dlogits of one row to dL/d(raw head); padded outputs get zero."""
    columns, outputs = gradient_RDZ.shape[1], gradient_RDZ.shape[2]
    used = (columns + 1 if dueling else columns) * outputs
    for j in range(used, head_gradient_RU.shape[1]):
        head_gradient_RU[row, j] = _ZERO
    if not dueling:
        for d in range(columns):
            for z in range(outputs):
                head_gradient_RU[row, d * outputs + z] = gradient_RDZ[row, d, z]
        return
    for z in range(outputs):
        head_gradient_RU[row, z] = _ZERO
    for k in range(branch_start_K.shape[0]):
        start, size = branch_start_K[k], branch_size_K[k]
        share = _ONE / np.float32(size)
        mean = head_gradient_RU[row, (1 + start) * outputs : (2 + start) * outputs]
        for z in range(outputs):
            mean[z] = _ZERO
        for d in range(start, start + size):
            for z in range(outputs):
                mean[z] += gradient_RDZ[row, d, z]
        for z in range(outputs):
            head_gradient_RU[row, z] += mean[z]
            mean[z] *= share
        for d in range(start + size - 1, start - 1, -1):
            at = (1 + d) * outputs
            for z in range(outputs):
                head_gradient_RU[row, at + z] = gradient_RDZ[row, d, z] - mean[z]


@backend.inline
def backward_tile(layout_YE, parameter_LP, learner, head_gradient_RU, before_RX, after_RX, delta_RX, first, last):
    """dL/d(before) of every trunk layer for rows first..last-1, from dL/d(raw head)."""
    rows, total, start = last - first, delta_RX.shape[1], learner * parameter_LP.shape[1]
    for layer in range(layout_YE.shape[0] - 1, 0, -1):
        inputs, stride = layout_YE[layer, INPUTS], layout_YE[layer, STRIDE]
        weight = start + layout_YE[layer, WEIGHT]
        previous, width = layout_YE[layer - 1, UNIT], layout_YE[layer - 1, STRIDE]
        if layer == layout_YE.shape[0] - 1:
            multiply_transposed(head_gradient_RU, first * stride, stride, parameter_LP, weight, stride, delta_RX,
                                first * total + previous, total, rows, inputs, stride)  # fmt: skip
        else:
            multiply_transposed(delta_RX, first * total + layout_YE[layer, UNIT], total, parameter_LP, weight, stride, delta_RX,
                                first * total + previous, total, rows, inputs, stride)  # fmt: skip
        for row in range(first, last):
            delta = delta_RX[row, previous : previous + width]
            before = before_RX[row, previous : previous + width]
            for j in range(inputs, width):
                delta[j] = _ZERO  # padded units
            if layout_YE[layer - 1, ACTIVATION] == RELU:
                for j in range(inputs):
                    delta[j] = _ZERO if before[j] <= _ZERO else delta[j]
            else:
                for j in range(inputs):
                    delta[j] = delta[j] * gelu_slope(before[j])


@backend.inline
def gradient_block(layout_YE, block_GE, block, learner, batch, observation_RO, after_RX, head_gradient_RU, delta_RX, gradient_LP):
    """dL/dW of one block of weight rows and, with a layer's first block, dL/db. Returns (first, last) of what it wrote in the row."""
    layer, row, rows = block_GE[block, 0], block_GE[block, 1], block_GE[block, 2]
    stride, start, first = layout_YE[layer, STRIDE], learner * gradient_LP.shape[1], learner * batch
    total = delta_RX.shape[1]
    weight = layout_YE[layer, WEIGHT] + row * stride
    last_layer = layer == layout_YE.shape[0] - 1
    if layer == 0:
        inputs = layout_YE[0, INPUTS]
        multiply_rows(observation_RO, first * inputs + row, inputs, delta_RX, first * total + layout_YE[0, UNIT], total,
                      gradient_LP, start + weight, stride, batch, rows, stride)  # fmt: skip
    elif last_layer:
        multiply_rows(after_RX, first * total + layout_YE[layer - 1, UNIT] + row, total, head_gradient_RU, first * stride, stride,
                      gradient_LP, start + weight, stride, batch, rows, stride)  # fmt: skip
    else:
        multiply_rows(after_RX, first * total + layout_YE[layer - 1, UNIT] + row, total, delta_RX,
                      first * total + layout_YE[layer, UNIT], total, gradient_LP, start + weight, stride, batch, rows, stride)  # fmt: skip
    if row == 0:
        bias = gradient_LP[learner, layout_YE[layer, BIAS] : layout_YE[layer, BIAS] + stride]
        for j in range(stride):
            bias[j] = _ZERO
        for b in range(first, first + batch):
            source = head_gradient_RU[b] if last_layer else delta_RX[b, layout_YE[layer, UNIT] : layout_YE[layer, UNIT] + stride]
            for j in range(stride):
                bias[j] += source[j]
    return weight, weight + rows * stride


def reference_forward(network: Network, views: dict[str, Any], observation: Any) -> Any:
    """Logits-to-be of the raw head in float64 NumPy, for tests and parity checks."""
    from scipy.special import erf

    x = np.asarray(observation, np.float64)
    for position in range(len(network.hidden)):
        x = x @ views[f"layer{position}.weight"].astype(np.float64) + views[f"layer{position}.bias"].astype(np.float64)
        x = np.maximum(x, 0.0) if network.activation == "relu" else 0.5 * x * (1.0 + erf(x / np.sqrt(2.0)))
    return x @ views["head.weight"].astype(np.float64) + views["head.bias"].astype(np.float64)
