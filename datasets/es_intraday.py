"""ES-like minutes with quotes: discrete ticks, a spread of one tick, a smile of volatility, and a price that nobody can predict.

An efficient price x moves as a random walk in points. At each moment the quotes are the two ticks around it,

    bid = tick floor(x / tick),   ask = bid + tick,

and a trade prints at the ask with the chance (x - bid) / tick, else at the bid, so that E[trade | x] = x: trades bounce between the
quotes (Roll 1984) without a drift. x is a martingale and lies between bid and ask. Therefore an order that buys at the ask or sells at the
bid pays ask - x or x - bid, at least 0, and earns nothing in expectation: whatever a policy knows of the past, its expected profit is minus
that and its commissions. Doing nothing is the best policy; each contract traded without regard to x within its tick costs half a tick.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bellmark.bars import Bars, check
from bellmark.component import Dataset, component, setting
from bellmark.datasets.synthetic import compiled, normals, session_smile, session_stamps, uniforms
from bellmark.errors import DataError
from bellmark.instrument import Instrument, Session
from bellmark.math import exp

TICK, MULTIPLIER = 0.25, 50.0
MOMENTS = 9  # the open of a minute and eight moments after it
_LANE_NORMAL, _LANE_TRADE = 0, 1
_MINUTE_VOLUME = 1500.0


@component
class EsIntraday(Dataset):
    """Minute bars like those of the E-mini S&P 500 future, with bid and ask one tick apart; no policy earns anything on them.

    The deviation of a minute follows a smile over the session (1.6 at its ends and 0.8 in its middle before it is scaled), its root mean
    square is `minute_deviation`. Bars are trades at 9 moments; the quotes of the bar are those at the same moments, so `[execution] use =
    "bar_quotes"` fills at them. A minute opens where the efficient price was at the close before, with a trade of its own; the first of a
    session opens after a gap. Every weekday is a session. No holidays, rolls or half days.

    A round trip pays a tick and two commissions: 0.25 + 2 * 2.25 / 50 = 0.34 points, against 0.45 of deviation a minute. A policy that
    turns round each minute pays it each minute, and loses 17 dollars a minute and contract.
    """

    name: ClassVar[str] = "es_intraday"
    symbol: str = setting("ES", "name of the symbol")
    sessions: int = setting(60, "sessions to make", ge=1, le=20_000)
    start: str = setting("2020-01-02", "ISO date of the first session")
    hours: Literal["regular", "globex"] = setting("regular", "regular: 09:30-16:00 New York, 390 bars; globex: 18:00-17:00, 1380 bars")
    price: float = setting(4500.0, "efficient price at the start", gt=0.0, unit="points")
    minute_deviation: float = setting(0.45, "standard deviation of a minute's change of the efficient price", gt=0.0, unit="points")
    gap_deviation: float = setting(8.0, "standard deviation of the gap between sessions", ge=0.0, unit="points")
    seed: int = setting(1, "seed of the path", ge=0)

    def truth(self) -> dict[str, NDArray[np.float64]]:
        """The efficient price at each open and close (`open`, `close`), and the `deviation` of each minute of a session (minutes)."""
        x_TM, _ = self._path()
        return {"open": x_TM[:, 0].copy(), "close": x_TM[:, -1].copy(), "deviation": self._deviations()}

    def read(self) -> list[Any]:
        """Bars with quotes and the instrument of the one symbol."""
        x_TM, volume_T = self._path()
        bid_TM = np.floor(x_TM / TICK) * TICK
        if float(bid_TM.min()) <= 0:
            lowest = f"{bid_TM.min():g}"
            raise DataError(f"data: the path falls to {lowest}; take a higher price than {self.price:g} or a smaller minute_deviation")
        ask_TM = bid_TM + TICK
        lifted_TM = uniforms(self.seed, _LANE_TRADE, len(x_TM), MOMENTS) < (x_TM - bid_TM) / TICK
        ts_T = session_stamps(self._session(), self.start, self.sessions)
        bars = Bars.from_prices(self.symbol, ts_T, _of_moments(np.where(lifted_TM, ask_TM, bid_TM)), volume_T, self.name)
        quotes: dict[str, Any] = {
            f"{side}_{name}".removesuffix("_close"): column
            for side, price_TM in (("bid", bid_TM), ("ask", ask_TM))
            for name, column in _of_moments(price_TM).items()
        }
        bars = replace(bars, **quotes)
        check(bars)
        return [(bars, Instrument(self.symbol, TICK, MULTIPLIER, session=self._session()))]

    def _session(self) -> Session:
        session = Session.parse("cme_regular" if self.hours == "regular" else "cme_globex")
        assert session is not None
        return session

    def _deviations(self) -> NDArray[np.float64]:
        smile_M = session_smile(self._session().length_seconds // 60)
        return self.minute_deviation * smile_M / np.sqrt(np.mean(smile_M**2))

    def _path(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The efficient price at the moments of each bar, and its volume."""
        deviation_M = self._deviations()
        x_TM = normals(self.seed, _LANE_NORMAL, self.sessions * len(deviation_M), MOMENTS + 1)
        volume_T = np.empty(len(x_TM))
        compiled(_walk)(self.price, self.gap_deviation, deviation_M, session_smile(len(deviation_M)), _MINUTE_VOLUME, x_TM, volume_T)
        return x_TM[:, :MOMENTS], volume_T


def _of_moments(price_TM: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    return {"open": price_TM[:, 0].copy(), "high": price_TM.max(axis=1), "low": price_TM.min(axis=1), "close": price_TM[:, -1].copy()}


def _walk(price, gap_deviation, deviation_M, smile_M, minute_volume, x_TM, volume_T):
    # x_TM comes in as standard normal numbers (gap, path, volume) and leaves as the path, its last column unused
    moments = x_TM.shape[1] - 1
    minutes = deviation_M.shape[0]
    x = price
    for t in range(x_TM.shape[0]):
        minute = t % minutes
        if minute == 0 and t > 0:
            x += gap_deviation * x_TM[t, 0]
        x_TM[t, 0] = x
        step = deviation_M[minute] / (moments - 1) ** 0.5
        for k in range(1, moments):
            x += step * x_TM[t, k]
            x_TM[t, k] = x
        volume_T[t] = np.rint(minute_volume * smile_M[minute] * smile_M[minute] * exp(0.3 * x_TM[t, moments]))
