"""Every loss component: finite differences, extreme inputs, no double precision; and what each promises."""

from functools import cache
from typing import ClassVar, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from learning_cases import flat_batch, uses_double

from bellmark.codegen import lower
from bellmark.component import component, make, setting
from bellmark.errors import PluginError, UsageError
from bellmark.losses import FUNCTIONS, CompiledLoss
from bellmark.plugins.losses import LOSSES
from bellmark.plugins.losses.c51 import C51
from bellmark.plugins.losses.mse import MeanSquaredError

pytestmark = pytest.mark.cpu
SCALARS = {"num_atoms": 21, "v_min": np.float32(-3.0), "v_max": np.float32(2.0)}


@cache
def compiled_functions(cls):
    return {name: lower(getattr(cls, name)) for name in FUNCTIONS}


class Rows:
    """Buffers of some rows and the row functions of a loss called by name, as the engine wires them."""

    def __init__(self, cls, rows=6, sizes=(3, 2), seed=0, scale=1.0):
        self.loss = make(cls, {"num_atoms": 21, "v_min": -3.0, "v_max": 2.0} if cls is C51 else {}, "losses.main")
        random, outputs, columns = np.random.default_rng(seed), self.loss.outputs(), sum(sizes)
        gradient, target, work, q = flat_batch(rows, columns, outputs, len(sizes))
        starts = np.cumsum([0, *sizes[:-1]])
        pick = [start + random.integers(0, size, rows) for start, size in zip(starts, sizes, strict=True)]
        pick = np.stack(pick, axis=1).astype(np.int32)
        self.names = {
            "logit_BDZ": (scale * random.standard_normal((rows, columns, outputs))).astype(np.float32),
            "next_logit_BDZ": (scale * random.standard_normal((rows, columns, outputs))).astype(np.float32),
            "column_BK": pick, "next_column_BK": pick[::-1].copy(), "q_BD": q, "work_BZ": work, "target_BKZ": target,
            "gradient_BDZ": gradient, "reward_B": random.standard_normal(rows).astype(np.float32),
            "discount_B": np.full(rows, 0.9, np.float32),
            "columns": columns, "branches": len(sizes), "outputs": outputs, "scale": np.float32(1.0), **SCALARS,
        }  # fmt: skip
        self.compiled = compiled_functions(cls)
        self.count = rows

    def call(self, name, row, **more):
        from bellmark.codegen import parameters

        values = {"row": row, **self.names, **more}
        return self.compiled[name](*(values[key] for key in parameters(getattr(self.loss, name))))

    def all(self):
        """Values, target, loss and priority of every row."""
        result = []
        self.names["gradient_BDZ"][:] = 0.0
        for row in range(self.count):
            self.call("expected", row)
            self.call("target", row)
            loss = self.call("loss_and_gradient", row)
            result.append((loss, self.call("priority", row, loss=np.float32(loss))))
        return np.array(result, np.float64)


@pytest.mark.parametrize("cls", LOSSES)
def test_gradient_equals_finite_differences(cls):
    rows = Rows(cls)
    rows.all()
    gradient, logit = rows.names["gradient_BDZ"].copy(), rows.names["logit_BDZ"]
    step = np.float32(1e-2)
    for index in np.ndindex(logit.shape):
        kept = logit[index]
        logit[index] = kept + step
        above = rows.call("loss_and_gradient", index[0])
        logit[index] = kept - step
        below = rows.call("loss_and_gradient", index[0])
        logit[index] = kept
        assert (float(above) - float(below)) / (2 * float(step)) == pytest.approx(gradient[index], rel=2e-3, abs=2e-4)


@pytest.mark.parametrize("cls", LOSSES)
def test_gradient_is_exactly_zero_on_columns_that_were_not_taken(cls):
    rows = Rows(cls)
    rows.all()
    for row in range(rows.count):
        others = [column for column in range(rows.names["columns"]) if column not in rows.names["column_BK"][row]]
        assert not np.any(rows.names["gradient_BDZ"][row, others])
        assert np.any(rows.names["gradient_BDZ"][row])


@pytest.mark.parametrize("cls", LOSSES)
@pytest.mark.parametrize("scale", [0.0, 1e-30, 1e3, 1e6])
def test_extreme_outputs_stay_finite(cls, scale):
    rows = Rows(cls, scale=scale)
    found = rows.all()
    assert np.isfinite(found).all()
    assert np.all(found >= 0.0)
    assert np.isfinite(rows.names["gradient_BDZ"]).all()
    assert np.isfinite(rows.names["q_BD"]).all()


@pytest.mark.parametrize("cls", LOSSES)
@pytest.mark.parametrize(("name", "functions"), [("logit_BDZ", ("expected", "loss_and_gradient")), ("next_logit_BDZ", ("target",)),
                                                 ("reward_B", ("target",))])  # fmt: skip
def test_nan_travels_to_the_results(cls, name, functions):
    rows = Rows(cls)
    rows.all()
    rows.names[name][0] = np.nan
    for function in functions:
        found = rows.call(function, 0)
    written = {"expected": "q_BD", "target": "target_BKZ"}.get(functions[-1])
    assert np.isnan(found) if written is None else np.isnan(rows.names[written][0]).any()


@pytest.mark.parametrize("cls", LOSSES)
def test_row_functions_hold_no_double_precision(cls):
    rows = Rows(cls)
    rows.all()
    for name, compiled in rows.compiled.items():
        assert not uses_double(compiled), name


@pytest.mark.parametrize("cls", LOSSES)
def test_every_function_is_wired(cls):
    compiled = CompiledLoss(Rows(cls).loss, True)
    assert callable(compiled.values)
    assert callable(compiled.backward)


def test_a_wrong_parameter_name_is_named():
    class Wrong:
        name = "wrong"
        outputs = staticmethod(lambda: 1)
        target = loss_and_gradient = priority = staticmethod(lambda row: 0.0)

        @staticmethod
        def expected(row, logits_BDZ):
            return 0.0

    with pytest.raises(PluginError, match=r"loss 'wrong'.expected: no argument named 'logits_BDZ'; did you mean 'logit_BDZ'"):
        CompiledLoss(Wrong(), True).values  # noqa: B018
    del Wrong.priority
    with pytest.raises(PluginError, match="loss 'wrong': it has no function priority"):
        CompiledLoss(Wrong(), True)


def test_support_must_not_be_empty():
    with pytest.raises(UsageError, match="v_min < v_max"):
        make(C51, {"v_min": 1.0, "v_max": 1.0}, "losses.c51")


def project(probabilities, reward, discount, v_min, v_max):
    atoms = len(probabilities)
    with np.errstate(divide="ignore"):
        logit = np.log(np.asarray(probabilities, np.float32))[None, None, :]
    _, target, work, _ = flat_batch(1, 1, atoms)
    column, reward, discount = np.zeros((1, 1), np.int32), np.float32([reward]), np.float32([discount])
    compiled_functions(C51)["target"](0, logit, column, reward, discount, target, work, 1, atoms,
                      np.float32(v_min), np.float32(v_max))  # fmt: skip
    return target[0, 0].astype(np.float64)


@given(
    st.integers(2, 60), st.floats(-50, 50, width=32), st.floats(0, 1, width=32), st.floats(-20, 10, width=32),
    st.floats(0.5, 30, width=32), st.integers(0, 2**32 - 1),
)  # fmt: skip
@settings(deadline=None, max_examples=200)
def test_projection_keeps_mass_and_the_mean_inside_the_support(atoms, reward, discount, v_min, width, seed):
    random = np.random.default_rng(seed)
    probabilities = random.dirichlet(np.ones(atoms)).astype(np.float32).astype(np.float64)
    v_max = np.float64(np.float32(v_min + width))
    found = project(probabilities, reward, discount, v_min, v_max)
    assert found.min() >= 0.0
    assert found.sum() == pytest.approx(1.0, abs=1e-6 * 2)
    support = np.linspace(v_min, v_max, atoms)
    moved = np.clip(reward + discount * support, v_min, v_max)
    assert found @ support == pytest.approx(probabilities / probabilities.sum() @ moved, abs=2e-5 * max(abs(v_min), abs(v_max), 1.0))


def test_projection_onto_an_exact_atom_loses_no_mass():
    probabilities = np.zeros(41)
    probabilities[20] = 1.0
    found = project(probabilities, 0.5, 1.0, -10.0, 10.0)
    assert found[21] == 1.0
    assert np.abs(np.delete(found, 21)).max() < 1e-30


@pytest.mark.parametrize(("reward", "atom"), [(1e37, -1), (-1e37, 0), (np.inf, -1), (-np.inf, 0), (2.0, -1), (-3.0, 0)])
def test_projection_beyond_the_support_puts_all_mass_on_the_edge(reward, atom):
    found = project(np.full(21, 1 / 21), reward, 0.0, -3.0, 2.0)
    assert found[atom] == pytest.approx(1.0, abs=1e-6)


def test_terminated_target_is_the_reward_alone():
    rows = Rows(MeanSquaredError)
    rows.names["discount_B"][:] = 0.0
    rows.all()
    assert np.array_equal(rows.names["target_BKZ"][:, 0, 0], rows.names["reward_B"])


@component
class StaticLoss(MeanSquaredError):  # noqa: N818  no exception: an error in the sense of statistics
    """A loss with a static setting of each type."""

    name: ClassVar[str] = "static_loss"
    share: float = setting(0.5, "a share", static=True)
    form: Literal["a", "b"] = setting("b", "a form", static=True)

    @staticmethod
    def priority(loss, share, form):
        return loss * share * form


def test_static_settings_of_every_type_are_constants():
    assert CompiledLoss(StaticLoss(), True)._settings == {"share": "float32(0.5)", "form": "1"}
