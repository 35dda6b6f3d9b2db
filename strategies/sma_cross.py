"""Strategy: crossing of two simple moving averages."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from bellmark.component import Strategy, component, setting


@component
class SmaCross(Strategy):
    """Long while the fast average of closes lies above the slow one, otherwise flat (or short with `short_exposure` = -1).

    mean_n[t] = sum of the last n closes, the current one included, / n. Compared as sum_fast * slow - sum_slow * fast > 0 in integers, so
    ties are exact. Flat before the symbol has `slow` bars. A window's sum is the difference of two running totals, one series for all
    windows, so a bar costs the same whatever the windows. Totals and products may wrap around int64; their differences are exact all the
    same while the means differ by less than 2^63 / (fast * slow) quanta.
    """

    name: ClassVar[str] = "sma_cross"
    fast: int = setting(20, "bars of the fast average", ge=1, unit="bars")
    slow: int = setting(50, "bars of the slow average", ge=2, unit="bars")
    short_exposure: float = setting(0.0, "exposure while the fast average is not above the slow one", ge=-1.0, le=1.0)
    series: ClassVar[dict[str, str]] = {"total": "int64"}
    series_settings: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="after")
    def _fast_is_faster(self) -> SmaCross:
        if self.fast >= self.slow:
            raise ValueError(f"expected fast below slow, found fast {self.fast} and slow {self.slow}")
        return self

    def compute_series(self, tape: Any) -> dict[str, NDArray[np.int64]]:
        """total: sum of all closes before each bar."""
        return {"total": np.cumsum(tape.close_ST, axis=1, dtype=np.int64) - tape.close_ST}

    @staticmethod
    def decide(t, close_T, total_T, fast, slow, short_exposure):
        if t + 1 < slow:
            return 0.0
        total = total_T[t] + close_T[t]
        sum_fast = total - total_T[t + 1 - fast]
        sum_slow = total - total_T[t + 1 - slow]
        return 1.0 if sum_fast * slow - sum_slow * fast > 0 else short_exposure
