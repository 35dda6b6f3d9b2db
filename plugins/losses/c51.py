"""C51: the categorical distribution of returns on fixed atoms (Bellemare, Dabney and Munos 2017)."""

from typing import ClassVar

import numpy as np

from bellmark.component import Loss, component, setting
from bellmark.elementary import exp32

_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


def largest_of(logit_BDZ, row, column, num_atoms):
    """The largest logit of a head column, by four running maxima."""
    m0 = m1 = m2 = m3 = logit_BDZ[row, column, 0]
    whole = num_atoms - num_atoms % 4
    for z in range(0, whole, 4):
        x0, x1 = logit_BDZ[row, column, z], logit_BDZ[row, column, z + 1]
        x2, x3 = logit_BDZ[row, column, z + 2], logit_BDZ[row, column, z + 3]
        m0 = x0 if x0 > m0 else m0
        m1 = x1 if x1 > m1 else m1
        m2 = x2 if x2 > m2 else m2
        m3 = x3 if x3 > m3 else m3
    for z in range(whole, num_atoms):
        x0 = logit_BDZ[row, column, z]
        m0 = x0 if x0 > m0 else m0
    m0 = m1 if m1 > m0 else m0
    m2 = m3 if m3 > m2 else m2
    return m2 if m2 > m0 else m0


def exponentials(logit_BDZ, row, column, work_BZ, num_atoms):
    """exp(logit - largest) of a head column into work_BZ[row]; returns (largest, their sum)."""
    largest = largest_of(logit_BDZ, row, column, num_atoms)
    for z in range(num_atoms):
        work_BZ[row, z] = exp32(logit_BDZ[row, column, z] - largest)
    s0, s1, s2, s3 = _ZERO, _ZERO, _ZERO, _ZERO
    whole = num_atoms - num_atoms % 4
    for z in range(0, whole, 4):
        s0 += work_BZ[row, z]
        s1 += work_BZ[row, z + 1]
        s2 += work_BZ[row, z + 2]
        s3 += work_BZ[row, z + 3]
    for z in range(whole, num_atoms):
        s0 += work_BZ[row, z]
    return largest, (s0 + s1) + (s2 + s3)


@component
class C51(Loss):
    """Cross-entropy to the projected categorical distribution of the next state, per branch.

    target_k = projection on the atoms z_j = v_min + j dz of r + discount * z, z distributed by the target network's softmax at (s', a').
    loss = mean over branches of -sum_z target_k[z] log softmax(logit_k)[z]; the priority is that cross-entropy. A flat head has one branch.

    Source: Bellemare, Dabney and Munos 2017, algorithm 1; Dabney's max-shifted log-softmax; branches as in Tavakoli et al. 2018, with a
    projected target of its own for each. Differs from the algorithm: the upper atom is the lower plus one, held to the last, and takes the
    fraction, so an atom that lands exactly on another, or on the edge by rounding, loses no mass; and what is computed is how far an atom
    moves, not where it lands, which keeps the fraction exact to 1e-6 at the last atoms too. Returns beyond the support move to its edge:
    v_min and v_max must hold the discounted returns that occur.
    """

    name: ClassVar[str] = "c51"

    num_atoms: int = setting(51, "atoms of the distribution", ge=2, le=1024, static=True)
    v_min: float = setting(-10.0, "return at the first atom", unit="reward")
    v_max: float = setting(10.0, "return at the last atom", unit="reward")

    def __post_init__(self) -> None:
        if not self.v_min < self.v_max:
            raise ValueError(f"expected v_min < v_max, found {self.v_min} and {self.v_max}")

    def outputs(self) -> int:
        """Outputs of a head column: its atoms."""
        return self.num_atoms

    @staticmethod
    def expected(row, logit_BDZ, q_BD, work_BZ, columns, num_atoms, v_min, v_max):
        spacing = (v_max - v_min) / np.float32(num_atoms - 1)
        whole = num_atoms - num_atoms % 4
        for d in range(columns):
            _, total = exponentials(logit_BDZ, row, d, work_BZ, num_atoms)
            s0, s1, s2, s3 = _ZERO, _ZERO, _ZERO, _ZERO
            for z in range(0, whole, 4):
                s0 += work_BZ[row, z] * np.float32(z)
                s1 += work_BZ[row, z + 1] * np.float32(z + 1)
                s2 += work_BZ[row, z + 2] * np.float32(z + 2)
                s3 += work_BZ[row, z + 3] * np.float32(z + 3)
            for z in range(whole, num_atoms):
                s0 += work_BZ[row, z] * np.float32(z)
            q_BD[row, d] = v_min + spacing * (((s0 + s1) + (s2 + s3)) / total)

    @staticmethod
    def target(row, next_logit_BDZ, next_column_BK, reward_B, discount_B, target_BKZ, work_BZ, branches, num_atoms, v_min, v_max):
        inverse, top = np.float32(num_atoms - 1) / (v_max - v_min), np.float32(num_atoms - 1)
        lost = _ONE - discount_B[row]
        shift = (reward_B[row] - lost * v_min) * inverse
        for k in range(branches):
            _, total = exponentials(next_logit_BDZ, row, next_column_BK[row, k], work_BZ, num_atoms)
            for z in range(num_atoms):
                target_BKZ[row, k, z] = _ZERO
            share = _ONE / total
            for z in range(num_atoms):
                # how many atoms atom z moves, held to the support; two compares, so NaN passes and is found by the guard
                here = np.float32(z)
                moved = shift - lost * here
                moved = -here if moved < -here else moved
                moved = top - here if moved > top - here else moved
                whole = np.floor(moved)
                lower = z + np.int32(whole) if whole >= -here else np.int64(0)
                upper = lower + 1 if lower + 1 < num_atoms else lower
                fraction = moved - whole
                mass = work_BZ[row, z] * share
                target_BKZ[row, k, lower] += mass * (_ONE - fraction)
                target_BKZ[row, k, upper] += mass * fraction

    @staticmethod
    def loss_and_gradient(row, logit_BDZ, column_BK, target_BKZ, gradient_BDZ, work_BZ, scale, branches, num_atoms):
        loss = _ZERO
        part = _ONE / np.float32(branches)
        for k in range(branches):
            column = column_BK[row, k]
            largest, total = exponentials(logit_BDZ, row, column, work_BZ, num_atoms)
            shift = largest + np.log(total)
            mass, entropy = _ZERO, _ZERO
            for z in range(num_atoms):
                mass += target_BKZ[row, k, z]
                entropy -= target_BKZ[row, k, z] * (logit_BDZ[row, column, z] - shift)
            loss += entropy
            factor, share = scale * part, mass / total
            for z in range(num_atoms):
                gradient_BDZ[row, column, z] = factor * (work_BZ[row, z] * share - target_BKZ[row, k, z])
        return loss * part

    @staticmethod
    def priority(loss):
        return loss
