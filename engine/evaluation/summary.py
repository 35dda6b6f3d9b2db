"""The summary of an account: what a backtest keeps of an equity curve that it does not store.

It is filled while the bars pass, in a fixed number of values whatever the bars, and most metrics can be computed from it (`of_summary`).
The moments come from sums of powers of the bar returns. Float64 sums of squares resolve a deviation down to about 1e-8 of the mean (times
the root of the number of bars); what is smaller counts as no deviation.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bellmark.evaluation.curve import NANOSECONDS_A_DAY, Curve, Undefined
from bellmark.evaluation.statistics import NEGLIGIBLE, ratio_to
from bellmark.evaluation.trades import trade_table

_ROUNDING = 2.0**-52


@dataclass(frozen=True, slots=True)
class Summary:
    """One account over one window. Money is float64 in currency, returns are simple bar returns, points count from 0 = start.

    bars: of the whole window; an account that was ruined stands still for the rest of it.
    return_sum .. return_sum_4: sums of r, r^2, r^3, r^4; loss_sum, loss_sum_2: of min(r, 0) and its square; winning_bars, losing_bars:
    bars with r > 0 and r < 0.
    max_drawdown: at most 0; peak_bar, valley_bar: points at which it began and was deepest, both 0 without one.
    trades: closed ones, net of spread, slippage and fees; trade_gain, trade_loss: sums over winners and (as a positive number) losers.
    fills: of any cause: orders (each part counts), stops, targets, liquidations, both legs of a roll, the closing at the end. refusals:
    orders refused, and parts that did not fill; one still due at the end is neither. traded_value: sum of |lots x fill price|; NaN where
    it is not known.
    costs: spread, slippage, fees, funding. gross: profit at reference prices. equity_sum: over all points, the start included.
    open_position: lots at the end.
    """

    bars: int
    start_equity: float
    end_equity: float
    return_sum: float
    return_sum_2: float
    return_sum_3: float
    return_sum_4: float
    loss_sum: float
    loss_sum_2: float
    winning_bars: int
    losing_bars: int
    max_drawdown: float
    peak_bar: int
    valley_bar: int
    trades: int
    winning_trades: int
    losing_trades: int
    trade_gain: float
    trade_loss: float
    fills: int
    refusals: int
    costs: Mapping[str, float]
    gross: float
    traded_value: float
    equity_sum: float
    ruined: bool
    periods_per_year: float
    first_ns: int
    last_ns: int
    open_position: int

    @property
    def days(self) -> float:
        """Calendar days from the first to the last stamp."""
        return float(self.last_ns - self.first_ns) / NANOSECONDS_A_DAY

    @property
    def wiped_out(self) -> bool:
        """True where the simulator ended the account or equity ended at or below zero."""
        return bool(self.ruined or self.end_equity <= 0.0)

    @property
    def wealth(self) -> float:
        """End equity over start equity."""
        return float(self.end_equity / self.start_equity)

    @property
    def total_cost(self) -> float:
        """All costs in currency."""
        return float(sum(self.costs.values()))

    @property
    def mean(self) -> float:
        """Mean bar return; NaN without a bar."""
        return self.return_sum / self.bars if self.bars else math.nan

    @property
    def gain_sum(self) -> float:
        """Sum of the positive bar returns; exactly 0 where there is none."""
        return max(self.return_sum - self.loss_sum, 0.0) if self.winning_bars else 0.0

    def deviation(self) -> float | Undefined:
        """Sample standard deviation (ddof 1) of bar returns; exactly 0 below 1e-12 of the mean and below what the sums resolve."""
        if self.bars < 2:
            return Undefined("fewer than two bars")
        value = math.sqrt(self._squares() / (self.bars - 1))
        return 0.0 if value <= NEGLIGIBLE * abs(self.mean) else value

    def downside_deviation(self) -> float | Undefined:
        """sqrt(mean(min(r, 0)^2)) over all bars, the winning ones included as zeros."""
        return math.sqrt(self.loss_sum_2 / self.bars) if self.bars else Undefined("no bar")

    def sharpe(self) -> float | Undefined:
        """Mean over deviation, a bar: not scaled to a year."""
        spread = self.deviation()
        return spread if isinstance(spread, Undefined) else ratio_to(self.mean, spread, "equity never moved", "returns never vary")

    def skewness(self) -> float | Undefined:
        """Population skewness g1 = m3 / m2^1.5 of the bar returns, m_k the central moments."""
        spread = self.deviation()
        if isinstance(spread, Undefined) or spread == 0.0:
            return spread if isinstance(spread, Undefined) else Undefined("returns never vary")
        scale, mean, _, third, _ = self._scaled()
        second = self._squares() / self.bars / scale**2
        central = third - mean * (3.0 * second + mean**2)
        return central / second**1.5

    def kurtosis(self) -> float | Undefined:
        """Population kurtosis m4 / m2^2 of the bar returns: 3 for a normal distribution."""
        spread = self.deviation()
        if isinstance(spread, Undefined) or spread == 0.0:
            return spread if isinstance(spread, Undefined) else Undefined("returns never vary")
        scale, mean, _, third, fourth = self._scaled()
        second = self._squares() / self.bars / scale**2
        central = fourth - mean * (4.0 * third - mean * (6.0 * second + 3.0 * mean**2))
        return max(central / second**2, 1.0)  # no distribution has less

    def _squares(self) -> float:
        """Sum of squared distances from the mean; 0 where it is within what adding the squares rounds off."""
        mean_part = self.return_sum * (self.return_sum / self.bars)
        value = self.return_sum_2 - mean_part
        return value if value > self.bars * _ROUNDING * mean_part else 0.0

    def _scaled(self) -> tuple[float, float, float, float, float]:
        """Root mean square, and the four raw moments in units of it: powers of small returns stay in range."""
        scale = math.sqrt(self.return_sum_2 / self.bars)
        sums = (self.return_sum, self.return_sum_2, self.return_sum_3, self.return_sum_4)
        first, second, third, fourth = (value / self.bars / scale**power for power, value in enumerate(sums, 1))
        return scale, first, second, third, fourth


def summary_of(curve: Curve, *, refusals: int = 0, open_position: int = 0) -> Summary:
    """The summary of a curve that is at hand: the same numbers as those kept while the bars pass, rounding aside.

    A return that is not finite (after equity reached zero) counts as 0, as it does where a ruined account stands still.
    """
    returns = np.where(np.isfinite(curve.returns), curve.returns, 0.0)
    losses = np.minimum(returns, 0.0)
    valley = int(np.argmin(curve.drawdown))
    before = curve.equity[: valley + 1]
    trades = trade_table(curve)
    profits = trades["profit"][trades["closed"]]
    return Summary(
        bars=curve.bars,
        start_equity=float(curve.equity[0]),
        end_equity=float(curve.equity[-1]),
        return_sum=float(returns.sum()),
        return_sum_2=float((returns**2).sum()),
        return_sum_3=float((returns**3).sum()),
        return_sum_4=float((returns**4).sum()),
        loss_sum=float(losses.sum()),
        loss_sum_2=float((losses**2).sum()),
        winning_bars=int(np.count_nonzero(returns > 0.0)),
        losing_bars=int(np.count_nonzero(returns < 0.0)),
        max_drawdown=float(curve.drawdown[valley]),
        peak_bar=valley - int(np.argmax(before[::-1])) if valley else 0,
        valley_bar=valley,
        trades=int(profits.size),
        winning_trades=int(np.count_nonzero(profits > 0.0)),
        losing_trades=int(np.count_nonzero(profits < 0.0)),
        trade_gain=float(profits[profits > 0.0].sum()) if not np.isnan(profits).any() else math.nan,
        trade_loss=-float(profits[profits < 0.0].sum()) if not np.isnan(profits).any() else math.nan,
        fills=int(curve.fills.size),
        refusals=refusals,
        costs=dict(curve.costs),
        gross=curve.gross if curve.gross is not None else math.nan,
        traded_value=float(np.abs(curve.fills["notional"]).sum()),
        equity_sum=float(curve.equity.sum()),
        ruined=curve.wiped_out,
        periods_per_year=curve.periods_per_year,
        first_ns=int(curve.stamp_ns[0]),
        last_ns=int(curve.stamp_ns[-1]),
        open_position=open_position,
    )
