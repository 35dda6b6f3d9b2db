"""The buffer registry: named buffers whose role decides their type, in one arena that is allocated once and never resized.

No caller passes a dtype and no pointer arithmetic happens outside this module, so a wrong element size, a write past the end or a stale
address (failures of the system that Bellmark descends from) cannot be written down. In checked mode guard zones with a fixed pattern lie
around every buffer; `check_guards` names the buffer beside a damaged one. With `poison` every byte is 0xFF before use (NaN as float).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark.errors import InternalError, UsageError, did_you_mean, known_list

ALIGNMENT = 64  # bytes: one cache line, and the widest vector of a CPU
_GUARD = np.uint8(0xA5)

# On the GPU gemm_operand and stored_observation are bf16; everything else has one type everywhere.
ROLES: dict[str, str] = {
    role: dtype
    for dtype, roles in {
        "float32": (
            *("gemm_operand", "stored_observation", "master_weight", "target_weight", "moment", "gradient", "activation", "logit", "loss"),
            *("td_error", "importance_weight", "feature", "observation", "portfolio", "normalisation", "reward", "discount", "propensity"),
        ),
        "int64": ("price", "lots", "money", "counter", "stamp", "setting_int", "control_int", "status", "layout", "state_int", "ledger"),
        "uint64": ("priority", "random_key", "legal_bits"),
        "float64": ("setting_float", "control_float", "statistic", "state_float", "series_float", "volume", "exposure"),
        "int32": ("index",),
        "uint8": ("flag",),
    }.items()
    for role in roles
}


@dataclass(frozen=True)
class Buffer:
    """One named buffer: role, shape, and the view of it that torch, CuPy, JAX and Numba can share without a copy."""

    name: str
    role: str
    array: NDArray[Any]

    @property
    def ptr(self) -> int:
        """The address of the first element."""
        return int(self.array.ctypes.data)

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


class BufferRegistry:
    """Buffers are declared, allocated together once, then read by name."""

    def __init__(self) -> None:
        self.generation = 0
        self._declared: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._buffers: dict[str, Buffer] = {}
        self._arena: NDArray[np.uint8] | None = None
        self._guards: list[tuple[str, NDArray[np.uint8]]] = []

    def declare(self, name: str, role: str, shape: tuple[int, ...]) -> None:
        """Announces a buffer. Declaring it again with the same role and shape changes nothing."""
        if role not in ROLES:
            raise InternalError(f"buffer '{name}': no role '{role}'{did_you_mean(role, ROLES)}{known_list(ROLES, 60)}")
        shape = tuple(int(size) for size in shape)
        if any(size < 0 for size in shape):
            raise InternalError(f"buffer '{name}': expected sizes >= 0, found {shape}")
        if name in self._declared:
            if self._declared[name] != (role, shape):
                raise InternalError(f"buffer '{name}': declared as {self._declared[name]}, and again as {(role, shape)}")
            return
        if self._arena is not None:
            raise InternalError(f"buffer '{name}': declared after the arena was allocated; an arena is never resized")
        self._declared[name] = (role, shape)

    def allocate(self, *, checked: bool = False, poison: bool = False) -> None:
        """Allocates the arena: zeros, or NaN bits with `poison`; with guard zones in checked mode."""
        if self._arena is not None:
            raise InternalError("the arena is allocated already; release() it first")
        guard = ALIGNMENT if checked else 0
        offsets, total = {}, guard
        for name, (role, shape) in self._declared.items():
            offsets[name] = total
            size = math.prod(shape) * np.dtype(ROLES[role]).itemsize
            total += -(-size // ALIGNMENT) * ALIGNMENT + guard
        try:
            raw = np.zeros(total + ALIGNMENT, np.uint8)
        except (MemoryError, ValueError, OverflowError) as error:
            sizes = {name: math.prod(shape) * np.dtype(ROLES[role]).itemsize for name, (role, shape) in self._declared.items()}
            largest = max(sizes, key=lambda name: sizes[name])
            raise UsageError(
                f"memory: the run needs {total / 2**30:.3g} GiB, which this machine does not give; the largest buffer is {largest} of "
                f"shape {self._declared[largest][1]}; lower learners, lanes, batch, network or replay.capacity"
            ) from error
        start = -raw.ctypes.data % ALIGNMENT
        self._arena = raw[start : start + total]
        if poison:
            self._arena[:] = 0xFF
        names = list(self._declared)
        for position, (name, (role, shape)) in enumerate(self._declared.items()):
            dtype = np.dtype(ROLES[role])
            size = math.prod(shape) * dtype.itemsize
            view = self._arena[offsets[name] : offsets[name] + size].view(dtype).reshape(shape)
            self._buffers[name] = Buffer(name, role, view)
            if checked:
                before = f"'{names[position - 1]}' and '{name}'" if position else f"the start and '{name}'"
                self._guard(before, offsets[name] - guard, offsets[name])
                end = offsets[name] + -(-size // ALIGNMENT) * ALIGNMENT
                after = f"'{name}' and '{names[position + 1]}'" if position + 1 < len(names) else f"'{name}' and the end"
                self._guard(after, offsets[name] + size, end)  # the slack behind the last element
                if position + 1 == len(names):
                    self._guard(after, end, end + guard)
        self.generation += 1

    def _guard(self, where: str, start: int, end: int) -> None:
        assert self._arena is not None
        zone = self._arena[start:end]
        zone[:] = _GUARD
        self._guards.append((where, zone))

    def check_guards(self) -> None:
        """Raises if anything wrote outside its buffer; names the buffers on both sides of the damage (checked mode)."""
        for where, zone in self._guards:
            if not np.all(zone == _GUARD):
                raise InternalError(f"buffers: the guard zone between {where} was overwritten")

    def release(self) -> None:
        """Gives the arena up. A Step that was built on it raises from now on."""
        self._arena, self._buffers, self._guards = None, {}, []
        self.generation += 1

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.buffer(name).array

    def __contains__(self, name: object) -> bool:
        return name in self._declared

    def buffer(self, name: str) -> Buffer:
        """The buffer of a name, for sharing with other libraries."""
        if name not in self._buffers:
            if name in self._declared:
                raise InternalError(f"buffer '{name}': it is declared, but the arena is not allocated")
            raise InternalError(f"no buffer named '{name}'{did_you_mean(name, self._declared)}{known_list(self._declared, 80)}")
        return self._buffers[name]

    def names(self) -> tuple[str, ...]:
        """All declared names in the order of declaration."""
        return tuple(self._declared)

    def role(self, name: str) -> str:
        """The role of a buffer."""
        return self._declared[name][0]

    def shape(self, name: str) -> tuple[int, ...]:
        """The declared shape of a buffer."""
        return self._declared[name][1]

    @property
    def nbytes(self) -> int:
        """Bytes of all declared buffers."""
        return sum(math.prod(shape) * np.dtype(ROLES[role]).itemsize for role, shape in self._declared.values())
