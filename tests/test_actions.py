"""The action space: one object for sizes, decoding and the columns of a head."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bellmark.actions import ActionSpace
from bellmark.errors import UsageError

FIVE = (-1.0, -0.5, 0.0, 0.5, 1.0)
FULL = {"exposures": FIVE, "order_types": ("market", "limit", "ioc"), "urgencies": ("patient", "normal", "aggressive")}


def test_45_actions_have_11_branching_columns_and_45_flat_ones():
    branching, flat = ActionSpace(**FULL), ActionSpace(**FULL, head="flat")
    assert (branching.A, branching.D, branching.K) == (45, 11, 3)
    assert (flat.A, flat.D, flat.K) == (45, 45, 1)
    assert branching.branch_start_K.tolist() == [0, 5, 8]


def test_a_factor_with_one_level_has_no_branch():
    space = ActionSpace(FIVE)
    assert (space.A, space.D, space.K) == (5, 5, 1)


@given(st.integers(0, 44))
def test_decoding_agrees_with_the_tables(action):
    space = ActionSpace(**FULL)
    decoded = space.decode(action)
    assert decoded.exposure == space.exposure_A[action]
    assert space.column_AK[action].tolist() == [
        FIVE.index(decoded.exposure),
        5 + space.order_types.index(decoded.order_type),
        8 + space.urgencies.index(decoded.urgency),
    ]


def test_joint_argmax_of_branching_columns_equals_the_argmax_of_each_branch():
    space = ActionSpace(**FULL)
    q_D = np.random.default_rng(3).normal(size=space.D)
    joint = q_D[space.column_AK].mean(axis=1).argmax()
    assert space.column_AK[joint].tolist() == [q_D[:5].argmax(), 5 + q_D[5:8].argmax(), 8 + q_D[8:].argmax()]


def test_the_no_op_is_flat():
    space = ActionSpace(**FULL)
    assert space.decode(space.noop).exposure == 0.0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"exposures": (0.0, -1.0)}, "ascending"),
        ({"exposures": ()}, "ascending"),
        ({"order_types": ("markt",)}, "did you mean 'market'"),
        ({"urgencies": ("normal", "normal")}, "without repetition"),
        ({"head": "round"}, "expected 'flat' or 'branching'"),
    ],
)
def test_a_wrong_space_is_refused(change, message):
    with pytest.raises(UsageError, match=message):
        ActionSpace(**{**FULL, **change})


def test_an_action_out_of_range_is_refused():
    with pytest.raises(UsageError, match=r"expected 0\.\.44, found 45"):
        ActionSpace(**FULL).decode(45)
