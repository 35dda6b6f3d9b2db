"""Squared TD error; with a branching head this is BDQ."""

from typing import ClassVar

import numpy as np

from bellmark.component import Loss, component

_ZERO, _ONE, _MINUS_TWO = np.float32(0.0), np.float32(1.0), np.float32(-2.0)


@component
class MeanSquaredError(Loss):
    """Squared error to one scalar target shared by all branches.

    y = r + discount * mean over branches k of Q_target(s', a*_k); loss = mean over branches of (y - Q_k)^2, without a factor 1/2; the
    priority is the sum over branches of |y - Q_k|, absolute before the sum. A flat head has one branch: plain (double) DQN.

    Source: Mnih et al. 2015; van Hasselt et al. 2016; Tavakoli, Pardo and Kormushev 2018, section 3 (their mean target). A reward of 1e20
    has a square that float32 cannot hold: the guard finds it, or `reward_bound` refuses it before.
    """

    name: ClassVar[str] = "mse"

    def outputs(self) -> int:
        """Outputs of a head column: the value."""
        return 1

    @staticmethod
    def expected(row, logit_BDZ, q_BD, columns):
        for d in range(columns):
            q_BD[row, d] = logit_BDZ[row, d, 0]

    @staticmethod
    def target(row, next_logit_BDZ, next_column_BK, reward_B, discount_B, target_BKZ, branches):
        total = _ZERO
        for k in range(branches):
            total += next_logit_BDZ[row, next_column_BK[row, k], 0]
        y = reward_B[row] + discount_B[row] * (total * (_ONE / np.float32(branches)))
        for k in range(branches):
            target_BKZ[row, k, 0] = y

    @staticmethod
    def loss_and_gradient(row, logit_BDZ, column_BK, target_BKZ, gradient_BDZ, scale, branches):
        loss = _ZERO
        part = _ONE / np.float32(branches)
        for k in range(branches):
            error = target_BKZ[row, k, 0] - logit_BDZ[row, column_BK[row, k], 0]
            loss += error * error
            gradient_BDZ[row, column_BK[row, k], 0] = _MINUS_TWO * error * (scale * part)
        return loss * part

    @staticmethod
    def priority(row, logit_BDZ, column_BK, target_BKZ, branches):
        total = _ZERO
        for k in range(branches):
            total += abs(target_BKZ[row, k, 0] - logit_BDZ[row, column_BK[row, k], 0])
        return total
