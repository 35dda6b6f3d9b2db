"""Strategy: crossing of two exponential moving averages."""

from __future__ import annotations

from typing import ClassVar

from pydantic import model_validator

from bellmark.component import Strategy, component, setting

_MEMORY = 32  # slow windows after which a close weighs exp(-64), less than the last place of a float64
_WARM_UP = 3  # slow windows after which the first close weighs 0.25 % at most


@component
class EmaCross(Strategy):
    """Long while the fast exponential average of closes lies above the slow one, otherwise flat (or short with `short_exposure` = -1).

    ema_n[t] = ema_n[t - 1] + 2 / (n + 1) (close[t] - ema_n[t - 1]), which begins with the first close of the symbol. Flat before the symbol
    has 3 * `slow` bars. A window that starts later takes the averages over the last 32 * `slow` bars before it, which differ from those
    over all bars by rounding alone. Equal averages are not a crossing: after constant prices both are that price exactly.
    """

    name: ClassVar[str] = "ema_cross"
    fast: int = setting(20, "span of the fast average: the newest bar weighs 2 / (fast + 1)", ge=1, unit="bars")
    slow: int = setting(50, "span of the slow average", ge=2, unit="bars")
    short_exposure: float = setting(0.0, "exposure while the fast average is not above the slow one", ge=-1.0, le=1.0)
    state: ClassVar[dict[str, str]] = {"ema_fast": "float64", "ema_slow": "float64", "started": "int64"}

    @model_validator(mode="after")
    def _fast_is_faster(self) -> EmaCross:
        if self.fast >= self.slow:
            raise ValueError(f"expected fast below slow, found fast {self.fast} and slow {self.slow}")
        return self

    @staticmethod
    def decide(t, close_T, fast, slow, short_exposure, ema_fast, ema_slow, started):
        if t + 1 < _WARM_UP * slow:
            return 0.0, 0.0, 0.0, 0
        begin = t
        if started == 0:
            begin = max(0, t - _MEMORY * slow)
            ema_fast = close_T[begin] * 1.0
            ema_slow = close_T[begin] * 1.0
        for bar in range(begin, t + 1):
            ema_fast += 2.0 / (fast + 1.0) * (close_T[bar] - ema_fast)
            ema_slow += 2.0 / (slow + 1.0) * (close_T[bar] - ema_slow)
        return 1.0 if ema_fast > ema_slow else short_exposure, ema_fast, ema_slow, 1
