"""The network: layout, initialisation, forward and backward against float64, tiles."""

import numpy as np
import pytest
from learning_cases import factored, training

from bellmark.actions import ActionSpace
from bellmark.errors import UsageError
from bellmark.network import Network, reference_forward

pytestmark = pytest.mark.cpu


def test_layout_has_no_overlap_and_padded_rows():
    network = Network(7, (16, 20), "gelu", True, 11, 5)
    taken = np.zeros(network.parameters, int)
    for layer in network.layers:
        assert layer.stride % 8 == 0
        assert layer.stride - layer.outputs < 8
        taken[layer.weight : layer.weight + layer.inputs * layer.stride] += 1
        taken[layer.bias : layer.bias + layer.stride] += 1
    assert np.all(taken == 1)
    assert network.layers[-1].outputs == 12 * 5


def test_blocks_cover_every_weight_row_once():
    network = Network(64, (256, 256), "relu", True, 11, 51)
    seen = {layer: [] for layer in range(3)}
    for layer, first, rows in network.blocks():
        seen[layer] += list(range(first, first + rows))
    assert [seen[layer] for layer in range(3)] == [list(range(64)), list(range(256)), list(range(256))]


def test_initialisation_is_uniform_by_seed_with_zero_padding():
    network = Network(9, (20, 12), "relu", True, 3, 5)
    parameter_LP = np.full((3, network.parameters), np.nan, np.float32)
    network.initialise(parameter_LP, [4, 5, 4])
    assert np.array_equal(parameter_LP[0], parameter_LP[2])
    assert not np.array_equal(parameter_LP[0], parameter_LP[1])
    views = network.views(parameter_LP[0])
    for layer, inputs in (("layer0", 9), ("layer1", 20), ("head", 12)):
        weight = views[f"{layer}.weight"]
        assert np.abs(weight).max() <= inputs**-0.5
        assert weight.std() == pytest.approx(inputs**-0.5 / 3**0.5, rel=0.2)
    used = sum(view.size for view in views.values())
    assert np.count_nonzero(parameter_LP[0]) <= used
    one = np.empty((1, network.parameters), np.float32)
    network.initialise(one, [5])
    assert np.array_equal(one[0], parameter_LP[1])


@pytest.mark.parametrize("bad", [{"activation": "gelo"}, {"hidden": ()}, {"hidden": (0,)}])
def test_wrong_settings_are_refused(bad):
    with pytest.raises(UsageError, match="network."):
        Network(**{"observation": 3, "hidden": (4,), "activation": "relu", "dueling": True, "columns": 2, "outputs": 1, **bad})


def place_batch(made, seed=0):
    """Random rows in the buffers that the learn step draws; returns the random generator."""
    random, registry, space = np.random.default_rng(seed), made.registry, made.space
    for name in ("observation_LBO", "next_observation_LBO", "reward_LB"):
        registry[name][:] = random.standard_normal(registry.shape(name)).astype(np.float32)
    registry["action_LB"][:] = random.integers(0, space.A, registry.shape("action_LB"))
    registry["discount_LB"][:] = random.choice([0.0, 0.5, 0.9], registry.shape("discount_LB"))
    registry["legal_LBW"][:] = (1 << space.A) - 1
    registry["priority_LB"][:] = random.integers(1, 2**30, registry.shape("priority_LB"))
    registry["index_LB"][:] = np.arange(registry.shape("index_LB")[1])
    made.control["priority_beta"] = made.control["priority_beta_start"] = 0.5
    return random


def launch(made, *names):
    for stage, function, arguments in made.learn._bound:
        if stage.name in names:
            function(*arguments)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("dueling", [True, False])
def test_forward_equals_float64(activation, dueling):
    made = training(activation=activation, dueling=dueling, batch=75)
    place_batch(made)
    made.evaluate.run()
    registry, network = made.registry, made.network
    for source, observed, result in (("parameter", "", ""), ("parameter", "next_", "next_"), ("target", "next_", "target_")):
        for learner in range(2):
            views = network.views(registry[f"{source}_LP"][learner])
            head = reference_forward(network, views, registry[f"{observed}observation_LBO"][learner])
            found = registry[f"{result}logit_LBDZ"][learner]
            expected = head.reshape(75, -1, 21)
            if dueling:
                value, advantage = expected[:, :1], expected[:, 1:]
                expected = np.empty_like(advantage)
                for start, size in zip(made.space.branch_start_K, made.space.branch_size_K, strict=True):
                    part = advantage[:, start : start + size]
                    expected[:, start : start + size] = value + part - part.mean(axis=1, keepdims=True)
            assert np.abs(found - expected).max() < 2e-6 * max(1.0, np.abs(expected).max()) * 10


def objective(made, learner):
    made.evaluate.run()
    weight, loss = made.registry["weight_LB"][learner].astype(np.float64), made.registry["loss_LB"][learner].astype(np.float64)
    return float(np.mean(weight * loss))


@pytest.mark.parametrize("loss", ["c51", "mse"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("head", ["branching", "flat"])
def test_gradient_equals_finite_differences(loss, activation, head):
    space = factored() if head == "branching" else ActionSpace((-1.0, 0.0, 1.0), ("market", "limit"), head="flat")
    made = training(loss, activation=activation, space=space, batch=40)
    place_batch(made)
    registry = made.registry
    registry["discount_LB"][:] = 0.0  # a step changes the online network's choice of a', which is no part of the gradient
    made.evaluate.run()
    launch(made, "gradient")
    parameter, gradient = registry["parameter_LP"][1], registry["gradient_LP"][1].copy()
    random = np.random.default_rng(2)
    # a direction makes one derivative of all parameters, which float32 losses can resolve
    for _ in range(4):
        direction = random.standard_normal(parameter.size).astype(np.float32) * (gradient != 0)
        direction /= np.linalg.norm(direction)
        step, kept = np.float32(2e-2), parameter.copy()
        parameter[:] = kept + step * direction
        above = objective(made, 1)
        parameter[:] = kept - step * direction
        below = objective(made, 1)
        parameter[:] = kept
        expected = float(gradient.astype(np.float64) @ direction)
        assert (above - below) / (2 * float(step)) == pytest.approx(expected, rel=3e-2, abs=2e-4)


def test_padding_of_gradient_and_parameters_stays_zero():
    made = training("c51", hidden=(20, 12))
    place_batch(made)
    made.evaluate.run()
    launch(made, "gradient", "verdict", "update")
    padded = np.ones(made.network.parameters, bool)
    for view in made.network.views(padded).values():
        view[:] = False
    assert padded.any()
    for name in ("gradient_LP", "parameter_LP", "adam_m_LP", "adam_v_LP", "target_LP"):
        assert not np.any(made.registry[name][:, padded])
    assert np.any(made.registry["gradient_LP"])


def test_weight_gradient_equals_float64_within_1e_5():
    made = training("c51", batch=200)
    place_batch(made)
    made.evaluate.run()
    launch(made, "gradient")
    registry, network = made.registry, made.network
    for learner in range(2):
        views = network.views(registry["gradient_LP"][learner])
        head, after = registry["head_gradient_LBU"][learner].astype(np.float64), registry["after_LBX"][learner].astype(np.float64)
        last = network.layers[-2]
        hidden = after[:, last.unit : last.unit + last.outputs]
        outputs = network.layers[-1].outputs
        expected = hidden.T @ head[:, :outputs]
        assert np.linalg.norm(views["head.weight"] - expected) < 1e-5 * np.linalg.norm(expected)
        expected = head[:, :outputs].sum(axis=0)
        assert np.linalg.norm(views["head.bias"] - expected) < 1e-5 * np.linalg.norm(expected)
