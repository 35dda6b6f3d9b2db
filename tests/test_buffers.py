"""The buffer registry: role decides type, one arena, guard zones, and no way to resize."""

import numpy as np
import pytest

from bellmark.buffers import ALIGNMENT, ROLES, BufferRegistry
from bellmark.errors import InternalError


def registry(checked=False, poison=False):
    made = BufferRegistry()
    made.declare("weight_LP", "master_weight", (2, 5))
    made.declare("terminated_LN", "flag", (2, 3))
    made.declare("leaf_LX", "priority", (2, 7))
    made.allocate(checked=checked, poison=poison)
    return made


def test_role_decides_the_type_and_nobody_passes_one():
    expected = {"master_weight": "f4", "moment": "f4", "gradient": "f4", "target_weight": "f4", "logit": "f4", "loss": "f4",
                "td_error": "f4", "counter": "i8", "money": "i8", "price": "i8", "lots": "i8", "priority": "u8", "index": "i4",
                "flag": "u1", "control_float": "f8"}  # fmt: skip
    assert {role: np.dtype(ROLES[role]).str[1:] for role in expected} == expected


def test_buffers_are_aligned_contiguous_and_apart():
    made = registry()
    spans = []
    for name in made.names():
        array = made[name]
        assert array.flags.c_contiguous and made.buffer(name).ptr % ALIGNMENT == 0 and not array.any()
        spans.append((made.buffer(name).ptr, made.buffer(name).ptr + array.nbytes))
    assert all(first[1] <= second[0] for first, second in zip(spans[:-1], spans[1:], strict=True))


def test_poison_fills_with_nan_bits_and_minus_one():
    made = registry(poison=True)
    assert np.isnan(made["weight_LP"]).all()
    assert (made["terminated_LN"] == 255).all()


@pytest.mark.parametrize("name", ["weight_LP", "terminated_LN", "leaf_LX"])
@pytest.mark.parametrize("side", [-1, 1])
def test_a_write_past_either_end_is_found_and_the_buffer_named(name, side):
    made = registry(checked=True)
    made.check_guards()
    array = made[name]
    import ctypes

    address = made.buffer(name).ptr + (array.nbytes if side > 0 else -1)
    ctypes.memset(address, 1, 1)
    with pytest.raises(InternalError, match=f"the guard zone between .*'{name}'"):
        made.check_guards()


def test_a_declaration_after_allocation_and_a_second_allocation_are_refused():
    made = registry()
    with pytest.raises(InternalError, match="never resized"):
        made.declare("late", "flag", (1,))
    with pytest.raises(InternalError, match="allocated already"):
        made.allocate()


def test_a_second_declaration_must_agree():
    made = BufferRegistry()
    made.declare("a", "flag", (2,))
    made.declare("a", "flag", (2,))
    with pytest.raises(InternalError, match="and again as"):
        made.declare("a", "flag", (3,))


def test_unknown_role_and_unknown_buffer_tell_the_nearest():
    made = registry()
    with pytest.raises(InternalError, match="did you mean 'weight_LP'"):
        made["weigth_LP"]
    with pytest.raises(InternalError, match="did you mean 'money'"):
        BufferRegistry().declare("x", "mony", (1,))


def test_a_buffer_is_shared_without_a_copy():
    made = registry()
    shared = np.from_dlpack(made.buffer("weight_LP"))
    shared[0, 0] = 3.0
    assert made["weight_LP"][0, 0] == 3.0
