"""Strategy: against extremes of Wilder's relative strength index."""

from __future__ import annotations

from typing import ClassVar

from pydantic import model_validator

from bellmark.component import Strategy, component, setting

_MEMORY = 64  # windows after which a move weighs exp(-64), less than the last place of a float64
_WARM_UP = 6  # windows after which the mean that the averages begin with weighs 0.7 % at most


@component
class RsiReversion(Strategy):
    """Long from an index below `lower` until it reaches `exit_level`; short (`short_exposure`, 0 = none) from one above `upper` until then.

    index[t] = 100 gain[t] / (gain[t] + loss[t]), 50 without any move, with Wilder's averages of rises and falls of the close:
    gain[t] = gain[t - 1] + (max(close[t] - close[t - 1], 0) - gain[t - 1]) / window, loss likewise. They begin as the plain means of the
    symbol's first `window` moves. The other extreme reverses at once. Flat before the symbol has 6 * `window` bars before the present one.
    A window that starts later takes the averages over the last 64 * `window` bars before it (the rest is below rounding) and is flat until
    the first extreme within it.
    Source: Wilder (1978), "New Concepts in Technical Trading Systems". The rule with an exit level is ours; he trades failure swings.
    """

    name: ClassVar[str] = "rsi_reversion"
    window: int = setting(14, "bars of Wilder's averages: the newest move weighs 1 / window", ge=1, unit="bars")
    lower: float = setting(30.0, "long below this index", ge=0.0, le=100.0)
    upper: float = setting(70.0, "short above this index", ge=0.0, le=100.0)
    exit_level: float = setting(50.0, "index at which a position is closed", ge=0.0, le=100.0)
    short_exposure: float = setting(0.0, "exposure after an index above upper", ge=-1.0, le=1.0)
    state: ClassVar[dict[str, str]] = {"gain": "float64", "loss": "float64", "side": "int64", "started": "int64"}

    @model_validator(mode="after")
    def _levels_in_order(self) -> RsiReversion:
        if not self.lower < self.exit_level < self.upper:
            found = f"{self.lower:g}, {self.exit_level:g} and {self.upper:g}"
            raise ValueError(f"expected lower < exit_level < upper, found {found}")
        return self

    @staticmethod
    def decide(t, close_T, window, lower, upper, exit_level, short_exposure, gain, loss, side, started):
        if t < _WARM_UP * window:
            return 0.0, 0.0, 0.0, 0, 0
        begin = t
        if started == 0:
            first = max(0, t - _MEMORY * window)
            begin = first + window + 1
            gain = 0.0
            loss = 0.0
            for bar in range(first + 1, begin):
                change = close_T[bar] - close_T[bar - 1]
                gain += max(change, 0) / window
                loss += max(-change, 0) / window
        for bar in range(begin, t + 1):
            change = close_T[bar] - close_T[bar - 1]
            gain += (max(change, 0) - gain) / window
            loss += (max(-change, 0) - loss) / window
        index = 100.0 * gain / (gain + loss) if gain + loss > 0.0 else 50.0
        if index < lower:
            side = 1
        elif index > upper:
            side = -1
        elif (side > 0 and index >= exit_level) or (side < 0 and index <= exit_level):
            side = 0
        exposure = 1.0 if side > 0 else (short_exposure if side < 0 else 0.0)
        return exposure, gain, loss, side, 1
