"""Decimation keeps what a screen shows."""

import numpy as np
import pytest

from bellmark.reporting.decimate import kept_points, mean_points, rounded


@pytest.mark.parametrize("count", [1, 2, 1199, 1200, 1201, 5000, 123_457])
def test_extremes_ends_and_order_survive_and_the_size_is_bounded(count):
    values = np.random.default_rng(count).normal(size=count).cumsum()
    keep = kept_points(values)
    assert keep[0] == 0 and keep[-1] == count - 1
    assert values[keep].min() == values.min() and values[keep].max() == values.max()
    assert (np.diff(keep) > 0).all()
    assert keep.size <= 1204 and (keep.size == count if count <= 1200 else True)


@pytest.mark.parametrize("count", [1799, 2399, 4000, 5999])
def test_every_stretch_of_the_curve_keeps_its_share_of_points(count):
    values = np.random.default_rng(count).normal(size=count)
    assert np.diff(kept_points(values)).max() <= 2 * (count // 600 + 1)


def test_one_spike_in_a_million_bars_is_drawn():
    values = np.zeros(1_000_000)
    values[777_777] = 1.0
    assert 777_777 in kept_points(values)


@pytest.mark.parametrize("count", [3, 1200, 10_007])
def test_means_add_up_to_the_whole(count):
    values = np.random.default_rng(1).normal(size=count)
    start, means = mean_points(values)
    lengths = np.diff(np.append(start, count))
    assert (means * lengths).sum() == pytest.approx(values.sum())
    assert start.size <= 1200


def test_rounded_values_are_those_of_single_precision():
    assert rounded(np.array([0.1, 1e9 / 3])) == [0.1, 333333300.0]
    assert all(np.float32(value) == np.float32(raw) for value, raw in zip(rounded(np.array([1.2345678])), [1.234568], strict=True))
