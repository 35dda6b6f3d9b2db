"""Strategy: crossing of two simple moving averages."""

from typing import ClassVar

from bellmark.component import Strategy, component, setting


@component
class SmaCross(Strategy):
    """Long while the fast average of closes lies above the slow one, otherwise flat (or short with `short_exposure` = -1).

    mean_n[t] = sum of the last n closes, the current one included, / n. Compared as sum_fast * slow > sum_slow * fast in integers, so ties
    are exact. Flat before the symbol has `slow` bars. The sums run on from bar to bar: a bar costs the same whatever the windows.
    """

    name: ClassVar[str] = "sma_cross"
    fast: int = setting(20, "bars of the fast average", ge=1, unit="bars")
    slow: int = setting(50, "bars of the slow average", ge=2, unit="bars")
    short_exposure: float = setting(0.0, "exposure while the fast average is not above the slow one", ge=-1.0, le=1.0)
    state: ClassVar[dict[str, str]] = {"sum_fast": "int64", "sum_slow": "int64", "started": "int64"}

    @staticmethod
    def decide(t, close_T, fast, slow, short_exposure, sum_fast, sum_slow, started):
        if t + 1 < fast or t + 1 < slow:
            return 0.0, sum_fast, sum_slow, 0
        if started == 0:
            sum_fast = 0
            sum_slow = 0
            for back in range(fast):
                sum_fast += close_T[t - back]
            for back in range(slow):
                sum_slow += close_T[t - back]
        else:
            sum_fast += close_T[t] - close_T[t - fast]
            sum_slow += close_T[t] - close_T[t - slow]
        exposure = 1.0 if sum_fast * slow > sum_slow * fast else short_exposure
        return exposure, sum_fast, sum_slow, 1
