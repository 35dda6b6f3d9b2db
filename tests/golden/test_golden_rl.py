"""Losses, replay, network parts and optimizer against the golden numerics, float32, within the tolerances of their README.

Runs on the cases kept in the repository, or with `--golden DIR` on every case in DIR/rl: a case without a test here is a failure.
"""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from learning_cases import OneLearner, flat_batch, training, tree_of

from bellmark import optimizer, replay
from bellmark.actions import ActionSpace
from bellmark.codegen import lower
from bellmark.losses import CompiledLoss
from bellmark.network import combine, combine_backward, gelu, gelu_slope
from bellmark.plugins.losses.c51 import C51
from bellmark.plugins.losses.mse import MeanSquaredError
from bellmark.policy import best_action
from bellmark.training import pack

pytestmark = pytest.mark.cpu
KEPT = Path(__file__).parent / "data" / "rl"


def pytest_generate_tests(metafunc):
    if "case" in metafunc.fixturenames:
        given = metafunc.config.getoption("--golden")
        folder = Path(given) / "rl" if given else KEPT
        metafunc.parametrize("case", sorted(folder.glob("*.npz")), ids=lambda path: path.stem)


def test_case(case):
    name = next((name for name in sorted(CHECKS, key=len, reverse=True) if case.stem.startswith(name)), None)
    assert name is not None, f"{case}: no test checks this family"
    with np.load(case) as data:
        CHECKS[name]({key: data[key] for key in data.files if key != "note"})


def f32(array):
    return np.ascontiguousarray(array, dtype=np.float32)


def close(found, expected, rtol=5e-6, atol=5e-6):
    np.testing.assert_allclose(np.asarray(found, np.float64), expected, rtol=rtol, atol=atol)


def gradient_close(found, expected):
    np.testing.assert_allclose(np.asarray(found, np.float64), expected, rtol=0, atol=2e-6 * np.abs(expected).max())


def c51_projection(case):
    rows, atoms = case["next_probs"].shape
    v_min, v_max = np.float32(case["v_min"]), np.float32(case["v_max"])
    with np.errstate(divide="ignore"):
        logit_BDZ = f32(np.log(case["next_probs"]))[:, None, :]
    _, target_BKZ, work_BZ, _ = flat_batch(rows, 1, atoms)
    discount = f32(np.where(case["done"] != 0, 0.0, case["gamma_n"]))
    target = lower(C51.target)
    for row in range(rows):
        target(row, logit_BDZ, np.zeros((rows, 1), np.int32), f32(case["reward"]), discount, target_BKZ, work_BZ, 1, atoms, v_min, v_max)
    close(target_BKZ[:, 0], case["out_m"], rtol=0)
    close(target_BKZ[:, 0].sum(axis=1, dtype=np.float64), case["next_probs"].sum(axis=1), rtol=0)


def c51_loss(case):
    rows, atoms = case["logits"].shape
    gradient_BDZ, _, work_BZ, _ = flat_batch(rows, 1, atoms)
    logit_BDZ, target_BKZ, weight = f32(case["logits"])[:, None, :], f32(case["target_m"])[:, None, :], f32(case["is_weight"])
    function, column = lower(C51.loss_and_gradient), np.zeros((rows, 1), np.int32)
    loss = [
        function(row, logit_BDZ, column, target_BKZ, gradient_BDZ, work_BZ, np.float32(weight[row] / np.float32(rows)), 1, atoms)
        for row in range(rows)
    ]
    extreme = np.abs(case["logits"]).max() > 100
    close(loss, case["out_ce"], rtol=1e-6 if extreme else 5e-6)
    close(np.mean(np.array(loss, np.float64) * case["is_weight"]), case["out_loss"])
    gradient_close(gradient_BDZ[:, 0], case["out_grad_logits"])


def double_dqn(case):
    rows, actions = case["q_online_next"].shape
    online, legal = f32(case["q_online_next"]), pack(case["mask_next"])
    chosen = np.array([best_action(online, row, legal[row], np.arange(actions, dtype=np.int32)[:, None]) for row in range(rows)], np.int32)
    assert np.array_equal(chosen, case["out_a_star"])
    discount = f32(np.where(case["terminated"] != 0, 0.0, case["gamma_n"]))
    _, target_BKZ, _, _ = flat_batch(rows, actions, 1)
    target = lower(MeanSquaredError.target)
    for row in range(rows):
        target(row, f32(case["q_target_next"])[:, :, None], chosen[:, None], f32(case["reward"]), discount, target_BKZ, 1)
    close(target_BKZ[:, 0, 0], case["out_y_double"])


def masked_argmax(case):
    q, legal = f32(case["q"]), pack(case["mask"])
    columns = np.arange(q.shape[1], dtype=np.int32)[:, None]
    assert [best_action(q, row, legal[row], columns) for row in range(len(q))] == case["out_argmax"].tolist()


def bdq(case):
    rows, columns = case["q"].shape
    sizes = case["branches"]
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    # joint actions of any branch sizes, as ActionSpace numbers them
    joint = np.stack(np.meshgrid(*(np.arange(size) for size in sizes), indexing="ij"), -1).reshape(-1, len(sizes))
    column_AK = (joint + starts).astype(np.int32)
    legal = pack(case["mask_next"][:, column_AK].all(axis=2))
    online = f32(case["q_online_next"])
    best = [best_action(online, row, legal[row], column_AK) for row in range(rows)]
    assert np.array_equal(joint[best], case["out_a_star"])
    gradient_BDZ, target_BKZ, _, _ = flat_batch(rows, columns, 1, len(sizes))
    next_column, column = column_AK[best], (case["action"] + starts).astype(np.int32)
    discount = f32(np.where(case["terminated"] != 0, 0.0, case["gamma_n"]))
    target, loss, priority = lower(MeanSquaredError.target), lower(MeanSquaredError.loss_and_gradient), lower(MeanSquaredError.priority)
    q, per_row, priorities = f32(case["q"])[:, :, None], [], []
    for row in range(rows):
        target(row, f32(case["q_target_next"])[:, :, None], next_column, f32(case["reward"]), discount, target_BKZ, len(sizes))
        scale = np.float32(f32(case["is_weight"])[row] / np.float32(rows))
        per_row.append(loss(row, q, column, target_BKZ, gradient_BDZ, scale, len(sizes)))
        priorities.append(priority(row, q, column, target_BKZ, len(sizes)))
    close(target_BKZ[:, 0, 0], case["out_y"])
    close(per_row, case["out_per_sample"])
    close(np.mean(np.array(per_row, np.float64) * case["is_weight"]), case["out_loss"])
    close(priorities, case["out_priority"])
    gradient_close(gradient_BDZ[:, :, 0], case["out_grad_q"])


def dqn_mse(case):
    rows = len(case["q"])
    gradient_BDZ, _, _, _ = flat_batch(rows, 1, 1)
    q, target, column = f32(case["q"])[:, None, None], f32(case["target"])[:, None, None], np.zeros((rows, 1), np.int32)
    function = lower(MeanSquaredError.loss_and_gradient)
    scale = f32(case["is_weight"]) / np.float32(rows)
    loss = [function(row, q, column, target, gradient_BDZ, scale[row], 1) for row in range(rows)]
    close(loss, case["out_per_sample"])
    close(np.mean(np.array(loss, np.float64) * case["is_weight"]), case["out_loss"])
    gradient_close(gradient_BDZ[:, 0, 0], case["out_grad_q"])


def integer_leaves(priority, alpha):
    """Leaves with the scale that the largest priority allows; the golden zero leaves are empty places."""
    scale = np.floor(np.log2(float(replay.LARGEST_LEAF) / max(float(priority.max()) ** alpha, 1e-300)))
    return [int(replay.leaf_of(float(p), alpha, 0.0, scale)) if p > 0 else 0 for p in priority]


def per(case):
    alpha = float(case["alpha"])
    leaves = integer_leaves(np.asarray(case["priority"], np.float64), alpha)
    tree, table = tree_of(leaves)
    total = sum(leaves)
    assert int(tree[0, -1]) == total
    targets = [min(int(Fraction(float(u)) * total), total - 1) for u in case["u"]]
    found = np.array([replay.find(tree, table, 0, np.uint64(target)) for target in targets])
    reference = np.searchsorted(np.cumsum(np.array(leaves, object)), np.array(targets, object), side="right")
    assert np.array_equal(found, reference.astype(int)), "integer prefix sums are exact at any size"
    assert all(leaves[index] > 0 for index in found)
    many = len(leaves) > 512
    stagnation = many and "out_w_batchmax" not in case
    allowed = 4e-3 * len(leaves) if stagnation else 2 if many else 0
    assert np.abs(found - case["out_index"]).max() <= allowed
    if "out_w_batchmax" in case and np.array_equal(found, case["out_index"]):
        beta, drawn = float(case["beta"]), np.array([leaves[index] for index in found], np.float64)
        weight = [replay.importance_weight(np.uint64(leaf), np.uint64(drawn.min()), beta) for leaf in drawn]
        # a leaf is rounded to a whole number, so its weight is known to half a unit of it and of the smallest
        allowed = 5e-6 + beta * (0.5 / drawn + 0.5 / drawn.min())
        assert np.all(np.abs(np.array(weight) / case["out_w_batchmax"] - 1.0) <= allowed)


def per_priority_update(case):
    scale = 20.0
    found = [int(replay.leaf_of(td, float(case["alpha"]), float(case["eps"]), scale)) for td in case["td"]]
    np.testing.assert_allclose(np.array(found) * 2.0**-scale, case["out_leaf"], rtol=0, atol=0.5001 * 2.0**-scale)


def nstep(case):
    rows = len(case["reward"])
    tree, _ = tree_of([1] * rows)
    reward, terminated = f32(case["reward"])[None], case["terminated"][None].astype(np.uint8)
    truncated, gamma = case["truncated"][None].astype(np.uint8), float(case["gamma"])
    for index in range(rows):
        total, discount, last = replay.n_step_return(reward, terminated, truncated, tree, 0, index, 1, rows - 1, int(case["n"]), gamma)
        assert last == case["out_last_index"][index]
        assert last - index + 1 == case["out_steps"][index]
        np.testing.assert_allclose(total, case["out_return"][index], rtol=5e-6, atol=5e-6)
        np.testing.assert_allclose(discount, case["out_discount"][index], rtol=1e-12)
        close(np.float32(total) + np.float32(discount) * np.float32(case["value_next"][last]), case["out_target"][index])


def dueling(case):
    v, a, grad = case["v"], case["a"], case["grad_out"]
    if a.ndim == 2:
        v, a, grad = v[:, :, None], a[:, :, None], grad[:, :, None]
    rows, columns, outputs = a.shape
    sizes = np.asarray(case.get("branches", [columns]), np.int32)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]]).astype(np.int32)
    head = np.full((rows, -(-(columns + 1) * outputs // 8) * 8), np.nan, np.float32)
    head[:, : (columns + 1) * outputs] = np.concatenate([v, a], axis=1).reshape(rows, -1)
    logit, back = np.full((rows, columns, outputs), np.nan, np.float32), np.full_like(head, np.nan)
    for row in range(rows):
        combine(head, row, 1, starts, sizes, logit)
        combine_backward(f32(grad), row, 1, starts, sizes, back)
    close(logit.reshape(rows, -1), case.get("out_logits", case.get("out_q")).reshape(rows, -1))
    gradient_close(back[:, :outputs].ravel(), case["out_grad_v"].ravel())
    gradient_close(back[:, outputs : (columns + 1) * outputs].ravel(), case["out_grad_a"].ravel())
    assert not np.any(back[:, (columns + 1) * outputs :])


def adam(case):
    one = OneLearner(case["p0"], float(case["lr"]), float(case["beta1"]), float(case["beta2"]), float(case["eps"]))
    for step, gradient in enumerate(case["grads"]):
        one.step(gradient)
        close(one.parameter[0], case["out_params"][step], rtol=0, atol=1e-6)
    close(one.m[0], case["out_m"], rtol=1e-5, atol=1e-8)
    close(one.v[0], case["out_v"], rtol=1e-5, atol=1e-8)


def polyak(case):
    one = OneLearner(case["online"][0], 0.0, tau=float(case["tau"]))
    one.target[:] = f32(case["target0"])
    for step, online in enumerate(case["online"]):
        one.parameter[:] = f32(online)
        one.step(np.zeros_like(online))
        close(one.target[0], case["out_target"] if case["out_target"].ndim == 1 else case["out_target"][step], rtol=1e-6, atol=1e-6)


def grad_clip(case):
    parts = [case[f"g{index}"] for index in range(sum(name.startswith("g") for name in case))]
    one = OneLearner(np.zeros(sum(part.size for part in parts)), 1e-3, max_norm=float(case["max_norm"]))
    one.step(np.concatenate([part.ravel() for part in parts]))
    np.testing.assert_allclose(one.norm[0], case["out_norm"], rtol=1e-6)
    for index, part in enumerate(parts):
        close(f32(part) * one.update[0, optimizer.CLIP], case[f"out_g{index}"])


def gelu_exact(case):
    x = f32(case["x"])
    close([gelu(value) for value in x], case["out_y_erf"])
    close([gelu_slope(value) * gradient for value, gradient in zip(x, f32(case["grad_out"]), strict=True)], case["out_grad_erf"])


def end_to_end(case):
    branches = (5, 3, 3)
    atoms, rows = case["p_bv"].size, len(case["s"])
    assert sum(branches) == case["mask_next"].shape[1]
    exposures = tuple(float(value) for value in np.linspace(-1.0, 1.0, branches[0]))
    space = ActionSpace(exposures, ("market", "limit", "ioc"), ("patient", "normal", "aggressive"))
    loss = C51(num_atoms=atoms, v_min=float(case["v_min"]), v_max=float(case["v_max"]))
    made = training(loss, learners=1, space=space, hidden=(case["p_b1"].size, case["p_b2"].size), activation="gelu", batch=rows, n_step=1,
                    tau=float(case["tau"]), learning_rate=float(case["lr"]), observation=case["s"].shape[1])  # fmt: skip
    registry, network = made.registry, made.network
    largest = case["is_weight"].max()  # ours are relative to the largest of the batch, so the gradient is larger by its inverse
    made.control["max_grad_norm"] = float(case["clip"]) / largest
    made.control["priority_beta_start"] = made.control["priority_beta_end"] = 1.0
    for prefix, name in (("p", "parameter_LP"), ("t", "target_LP")):
        write_network(network.views(registry[name][0]), case, prefix)
    batch = {
        "observation_LBO": case["s"],
        "next_observation_LBO": case["s_next"],
        "reward_LB": case["reward"],
        "discount_LB": np.where(case["terminated"] != 0, 0.0, case["gamma_n"]),
        "action_LB": np.ravel_multi_index(tuple(case["action"].T), branches),
        "legal_LBW": pack(case["mask_next"][:, space.column_AK].all(axis=2)),
        # weights come from priorities: with beta = 1 they are the smallest over each
        "priority_LB": np.rint(2.0**38 * case["is_weight"].min() / case["is_weight"]).astype(np.uint64),
        "index_LB": np.arange(rows),
    }
    names = [stage.name for stage in made.learn.stages]
    for step in range(3):
        for name, value in batch.items():
            registry[name][0] = value
        launch = dict(zip(names, made.learn._bound, strict=True))
        launch["schedule"][1](*launch["schedule"][2])
        made.evaluate.run()
        for name in names[names.index("gradient") :]:
            launch[name][1](*launch[name][2])
        weighted = np.mean(case["is_weight"] * registry["loss_LB"][0])
        close(weighted, case[f"out_loss_{step}"])
        close(registry["gradient_norm_L"][0] * largest, case[f"out_gradnorm_{step}"], rtol=2e-5)
        if step == 0:
            close(registry["logit_LBDZ"][0].ravel(), case["out_logits"].ravel())
            close(registry["target_LBKZ"][0], case["out_m"])
            close(registry["loss_LB"][0], case["out_ce"])
            check_gradient(network, registry, case, largest)
    for prefix, name in (("out_p", "parameter_LP"), ("out_t", "target_LP")):
        expected = {key: array.copy() for key, array in network.views(np.zeros(network.parameters, np.float32)).items()}
        write_network(expected, case, prefix)
        for key, view in network.views(registry[name][0]).items():
            close(view, expected[key], rtol=0, atol=2e-6)


def write_network(views, case, prefix):
    """The golden network (y = x W^T + b, heads apart) in the layout of the merged head."""
    for layer in (1, 2):
        views[f"layer{layer - 1}.weight"][:] = case[f"{prefix}_w{layer}"].T
        views[f"layer{layer - 1}.bias"][:] = case[f"{prefix}_b{layer}"]
    views["head.weight"][:] = np.concatenate([case[f"{prefix}_wv"], case[f"{prefix}_wa"]]).T
    views["head.bias"][:] = np.concatenate([case[f"{prefix}_bv"], case[f"{prefix}_ba"]])


def check_gradient(network, registry, case, largest):
    expected = {key: array.copy() for key, array in network.views(np.zeros(network.parameters, np.float32)).items()}
    write_network(expected, case, "out_grad")
    norm = registry["gradient_norm_L"][0] * largest
    scale = min(1.0, float(case["clip"]) / (norm + 1e-6)) * largest
    biggest = max(np.abs(array).max() for array in expected.values())
    for key, view in network.views(registry["gradient_LP"][0]).items():
        np.testing.assert_allclose(view * scale, expected[key], rtol=0, atol=4e-6 * biggest)


def test_priority_columns_of_the_loss_components():
    assert CompiledLoss(C51(), True).outputs == 51
    assert CompiledLoss(MeanSquaredError(), True).outputs == 1


CHECKS = {
    "c51_proj": c51_projection, "c51_loss": c51_loss, "double_dqn": double_dqn, "masked_argmax": masked_argmax, "bdq": bdq,
    "dqn_mse": dqn_mse, "per": per, "per_priority_update": per_priority_update, "nstep": nstep, "dueling": dueling,
    "optim_adam": adam, "grad_clip": grad_clip, "polyak": polyak, "gelu": gelu_exact, "e2e_c51_branching": end_to_end,
}  # fmt: skip
