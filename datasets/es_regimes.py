"""A synthetic minute market that looks like the E-mini S&P 500 future: tick 0.25, $50 a point, sessions, changing regimes."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bellmark.bars import Bars, check
from bellmark.component import Dataset, component, setting
from bellmark.datasets.synthetic import compiled, normals, path_bars, session_smile, session_stamps, uniforms
from bellmark.errors import DataError
from bellmark.instrument import Instrument, Session
from bellmark.math import exp

_TICK, _MULTIPLIER = 0.25, 50.0
_PIECES = 4  # observations of the path in a minute
_LANE_NORMAL, _LANE_REGIME = 0, 1
_MINUTE_VOLUME = 1500.0
# drift (in units of `trend`), deviation (relative), mean length in minutes, chance that the regime before gives way to this one
REGIMES = (
    ("quiet", 0.0, 0.7, 240.0, 0.4),
    ("rising", 1.0, 1.0, 120.0, 0.25),
    ("falling", -1.0, 1.15, 120.0, 0.25),
    ("turbulent", 0.0, 2.0, 60.0, 0.1),
)


@component
class EsRegimes(Dataset):
    """Synthetic ES-like minute bars: regimes of drift and volatility, a smile over the session, overnight gaps.

    Each minute the regime (quiet, rising, falling, turbulent) stays or gives way with a chance of 1 / its mean length. The level moves
    by drift + deviation * smile * e, where the smile is 1.6 at the session's ends and 0.8 in its middle before it is scaled; the root mean
    square of the deviation over regimes and session is `minute_deviation`. Bars open at the close before, but for the first of a
    session, which opens after a gap. Every weekday is a session. No holidays, rolls or half days.
    """

    name: ClassVar[str] = "es_regimes"
    symbol: str = setting("ES", "name of the symbol")
    sessions: int = setting(250, "sessions to make", ge=1, le=20_000)
    start: str = setting("2020-01-02", "ISO date of the first session")
    hours: Literal["regular", "globex"] = setting("regular", "regular: 09:30-16:00 New York, 390 bars; globex: 18:00-17:00, 1380 bars")
    price: float = setting(4500.0, "level at the start", gt=0.0, unit="points")
    minute_deviation: float = setting(0.45, "standard deviation of a minute's change", gt=0.0, unit="points")
    trend: float = setting(0.03, "drift a minute in the rising and (negative) falling regimes; 0 = none", ge=0.0, unit="points")
    gap_deviation: float = setting(8.0, "standard deviation of the gap between sessions", ge=0.0, unit="points")
    seed: int = setting(1, "seed of the path", ge=0)

    def truth(self) -> dict[str, NDArray[Any]]:
        """`regime` (bars): the place in REGIMES of each minute's regime; `close` (bars): the level at each close, unrounded."""
        level_TK, _, _, regime_T = self._path(self._session().length_seconds // 60)
        return {"regime": regime_T, "close": level_TK[:, -1].copy()}

    def read(self) -> list[Any]:
        """Bars and instrument of the one symbol."""
        session = self._session()
        minutes = session.length_seconds // 60
        level_TK, start_T, volume_T, _ = self._path(minutes)
        prices = path_bars(level_TK, start_T, _TICK)
        lowest = float(prices["low"].min())
        if lowest <= 0:
            raise DataError(f"data: the path falls to {lowest:g}; take a higher price than {self.price:g} or a smaller minute_deviation")
        bars = Bars.from_prices(self.symbol, session_stamps(session, self.start, self.sessions), prices, volume_T, self.name)
        check(bars)
        return [(bars, Instrument(self.symbol, _TICK, _MULTIPLIER, session=session))]

    def _session(self) -> Session:
        session = Session.parse("cme_regular" if self.hours == "regular" else "cme_globex")
        assert session is not None
        return session

    def _path(self, minutes: int) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]]:
        bars = self.sessions * minutes
        smile_M = session_smile(minutes)
        level_TK = normals(self.seed, _LANE_NORMAL, bars, _PIECES + 2)
        start_T, volume_T, regime_T = np.empty(bars), uniforms(self.seed, _LANE_REGIME, bars)[:, 0], np.empty(bars, np.int64)
        scale = self.minute_deviation / np.sqrt(np.mean(smile_M**2) * _mean_square())
        compiled(_walk)(
            self.price, self.trend, scale, self.gap_deviation, smile_M, _MINUTE_VOLUME,
            np.array([row[1:] for row in REGIMES]), level_TK, start_T, volume_T, regime_T,
        )  # fmt: skip
        return level_TK[:, :_PIECES], start_T, volume_T, regime_T


def _mean_square() -> float:
    """Stationary mean square of the regimes' relative deviation: a regime's share of time is its chance times its length."""
    share = np.array([length * chance for _, _, _, length, chance in REGIMES])
    return float(np.sum(share / share.sum() * np.array([deviation**2 for _, _, deviation, _, _ in REGIMES])))


def _walk(price, trend, scale, gap_deviation, smile_M, minute_volume, regime_RX, level_TK, start_T, volume_T, regime_T):
    # level_TK comes in as standard normal numbers (path, gap, volume) and leaves as the path; volume_T comes in as uniform numbers
    pieces = level_TK.shape[1] - 2
    minutes = smile_M.shape[0]
    level = price
    regime = 0
    for t in range(level_TK.shape[0]):
        minute = t % minutes
        # One uniform number decides both whether the regime gives way and to which.
        leave = 1.0 / regime_RX[regime, 2]
        if volume_T[t] < leave:
            chance = volume_T[t] / leave
            regime = 0
            while regime < regime_RX.shape[0] - 1 and chance >= regime_RX[regime, 3]:
                chance -= regime_RX[regime, 3]
                regime += 1
        regime_T[t] = regime
        if minute == 0 and t > 0:
            level += gap_deviation * level_TK[t, pieces]
        start_T[t] = level
        deviation = scale * smile_M[minute] * regime_RX[regime, 1]
        for k in range(pieces):
            level += trend * regime_RX[regime, 0] / pieces + deviation * level_TK[t, k] / pieces**0.5
            level_TK[t, k] = level
        busy = smile_M[minute] * smile_M[minute] * regime_RX[regime, 1]
        volume_T[t] = np.rint(minute_volume * busy * exp(0.3 * level_TK[t, pieces + 1]))
