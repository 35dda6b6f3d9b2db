"""On a market on which nobody can earn, training finds nothing: what does earn there has seen the future.

Prices of `garch_jumps` without drift are a martingale, so without costs the return of every account has mean zero in every bar, whatever
its policy knows of the past. Its mean over the test part, over its standard error, is then nearly a standard normal number.
"""

from typing import ClassVar

import numpy as np
import pytest
from moment_cases import ERRORS

from bellmark.assembly import assemble
from bellmark.backtester import run_strategy
from bellmark.component import Strategy, component, make
from bellmark.host import host
from bellmark.profile import load_profile
from bellmark.run import Run

pytestmark = [pytest.mark.cpu, pytest.mark.slow]
MARKET = {"data.use": "garch_jumps", "data.bars": 10_000, "data.seed": 9, "market.spread_ticks": 0.0, "market.slippage_bps": 0.0,
          "market.fee_per_contract": 0.0, "market.fee_minimum": 0.0, "trainer.epochs": 4}  # fmt: skip


@pytest.fixture(scope="module")
def assembly():
    return assemble(load_profile("quickstart", options={key: (value, "test") for key, value in MARKET.items()}), host())


def errors_from_zero(lane):
    """The mean simple return of a bar in standard errors."""
    equity_T = lane.equity_T * 1e-9
    return_T = np.diff(equity_T) / equity_T[:-1]
    return_T = return_T[return_T != 0]  # a flat account waits, at no risk
    return return_T.mean() / (return_T.std() / np.sqrt(return_T.size)), return_T.size


def test_no_learner_earns_beyond_chance(assembly, tmp_path):
    run = Run.create(tmp_path, None, assembly.profile)
    assembly.train(run)
    found = [errors_from_zero(lane) for lane in assembly.backtest(run).lanes]
    assert len(found) == 4 and max(bars for _, bars in found) > 500
    assert all(abs(errors) < ERRORS for errors, _ in found), found


@component
class NextClose(Strategy):
    """Goes with the close to come."""

    name: ClassVar[str] = "next_close"

    @staticmethod
    def decide(t, close_T):
        return 1.0 if t + 1 < close_T.shape[0] and close_T[t + 1] > close_T[t] else -1.0


def test_who_sees_the_next_close_is_found_out_by_the_same_test(assembly):
    errors, bars = errors_from_zero(run_strategy(assembly.data, make(NextClose, {}, "peeks")).lanes[0])
    assert bars > 500 and errors > ERRORS
