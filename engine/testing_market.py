"""Markets to test components on: tapes made by hand, at random or extreme, and the proof that a feature does not look ahead.

A plugin's tests need three lines: `prove_no_look_ahead(MyFeature(), random_tape(2000, seed=1, bars_per_session=130))`, and
`assemble([("x", MyFeature())], make())` for every `make` in `EXTREME_TAPES`, which raises where a value is not finite.
Prices are int64 quanta throughout; one quantum is 0.25 and one lot is worth 50 a point, as in the E-mini S&P 500 future.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bellmark.codegen import lower, parameters
from bellmark.component import Feature
from bellmark.errors import PluginError, UsageError, did_you_mean, known_list
from bellmark.features import assemble
from bellmark.instrument import Instrument
from bellmark.tape import ARRAYS, EXTRA, Tape

QUANTUM = 0.25
_PRICES = ("open", "high", "low", "close")
_MINUTE = 60_000_000_000
_START = 1_577_836_800_000_000_000  # 2020-01-01 UTC
_LARGE = 2**50  # quanta; the engine takes prices below 2^53


def make_tape(
    close_T: ArrayLike,
    *,
    open_T: ArrayLike | None = None,
    high_T: ArrayLike | None = None,
    low_T: ArrayLike | None = None,
    volume_T: ArrayLike | None = None,
    bars_per_session: int = 1,
    symbol: str = "TEST",
    extra_T: dict[str, ArrayLike] | None = None,
) -> Tape:
    """A tape of one symbol from prices in quanta.

    `extra_T` are columns of `bellmark.tape.EXTRA` as they stand there: quotes and roll_price in quanta, funding_rate in 1e-9, 0 for none.
    Funding without a mark is settled at the close; rolls are where roll_price is not 0, unless they are given.

    Without an open, bars open at the close before; without high and low, these span open and close; the volume is 100 lots. Bars are
    one minute apart; one bar a session means daily data, which have no time of session.
    """
    close = np.asarray(close_T, np.int64)
    count = len(close)
    opening = np.concatenate([close[:1], close[:-1]]) if open_T is None else np.asarray(open_T, np.int64)
    high = np.maximum(opening, close) if high_T is None else np.asarray(high_T, np.int64)
    low = np.minimum(opening, close) if low_T is None else np.asarray(low_T, np.int64)
    volume = np.full(count, 100.0) if volume_T is None else np.asarray(volume_T, np.float64)
    t = np.arange(count)
    number = t % bars_per_session
    arrays: dict[str, Any] = {
        "ts": _START + _MINUTE * (t + 1),
        "open": opening,
        "high": high,
        "low": low,
        "close": close,
        "volume": volume,
        "session": t // bars_per_session,
        "session_bar": number,
        "session_left": bars_per_session - 1 - number,
        "session_fraction": (number + 1) / (bars_per_session + 1) if bars_per_session > 1 else np.zeros(count),
        "gap": np.zeros(count),
    }
    negative = bool(min(low.min(), close.min(), opening.min()) <= 0)
    instrument = Instrument(
        symbol, tick_size=QUANTUM, price_quantum=QUANTUM, contract_multiplier=50.0, allow_negative_prices=negative, periods_per_year=252.0
    )
    rows: dict[str, Any] = {f"{name}_ST": np.asarray(arrays[name], kind)[None, :] for name, kind in ARRAYS.items()}
    return Tape(
        symbols=(symbol,),
        instruments=(instrument,),
        length_S=np.array([count]),
        duplicates_S=np.zeros(1, np.int64),
        outside_S=np.zeros(1, np.int64),
        content_hash="made for a test",
        periods_per_year=252.0,
        extra_ST=_extra(extra_T or {}, close),
        **rows,
    )


def _extra(given_T: dict[str, ArrayLike], close_T: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
    columns: dict[str, Any] = {name: np.asarray(column) for name, column in given_T.items()}
    if "funding_rate" in columns:
        columns.setdefault("funding_mark", np.where(columns["funding_rate"] != 0, close_T, 0))
    if "roll_price" in columns:
        columns.setdefault("rolls", columns["roll_price"] != 0)
    unknown = next((name for name in columns if name not in EXTRA), None)
    if unknown is not None:
        raise UsageError(f"extra_T: no column {unknown!r}{did_you_mean(unknown, EXTRA)}{known_list(EXTRA)}")
    return {name: np.asarray(columns[name], kind)[None, :] for name, kind in EXTRA.items() if name in columns}


def random_tape(count: int, *, seed: int, bars_per_session: int = 1, start: int = 20_000, symbol: str = "TEST") -> Tape:
    """A tape of a random walk in whole quanta with ranges, gaps and volumes; `start` should be far above `count`."""
    return make_tape(**_random_bars(count, seed, start), bars_per_session=bars_per_session, symbol=symbol)


def _random_bars(count: int, seed: int, start: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    close = np.maximum(start + np.cumsum(random.integers(-8, 9, count)), 20)
    opening = np.concatenate([[start], close[:-1]]) + random.integers(-2, 3, count)
    return {
        "open_T": opening,
        "high_T": np.maximum(opening, close) + random.integers(0, 5, count),
        "low_T": np.minimum(opening, close) - random.integers(0, 5, count),
        "close_T": close,
        "volume_T": random.integers(1, 1000, count).astype(np.float64),
    }


def join(tapes: Sequence[Tape]) -> Tape:
    """Tapes of one symbol each as one tape of several, padded to the longest; an extra column that a tape lacks is 0, quotes must agree."""
    longest = max(tape.close_ST.shape[1] for tape in tapes)
    quotes = [sorted(name for name in tape.extra_ST if name.startswith(("bid_", "ask_"))) for tape in tapes]
    if any(names != quotes[0] for names in quotes):
        raise UsageError(f"join: expected the same quotes in every tape, found {quotes}")

    def padded(rows_ST: Sequence[NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate([np.pad(row_ST, ((0, 0), (0, longest - row_ST.shape[1]))) for row_ST in rows_ST])

    arrays: dict[str, Any] = {f"{name}_ST": padded([getattr(tape, f"{name}_ST") for tape in tapes]) for name in ARRAYS}
    extra = {
        name: padded([tape.extra_ST.get(name, np.zeros((1, 0), kind)) for tape in tapes])
        for name, kind in EXTRA.items()
        if any(name in tape.extra_ST for tape in tapes)
    }
    return dataclasses.replace(
        tapes[0],
        symbols=tuple(tape.symbols[0] for tape in tapes),
        instruments=tuple(tape.instruments[0] for tape in tapes),
        length_S=np.concatenate([tape.length_S for tape in tapes]),
        duplicates_S=np.zeros(len(tapes), np.int64),
        outside_S=np.zeros(len(tapes), np.int64),
        extra_ST=extra,
        **arrays,
    )


def cut(tape: Tape, begin: int, end: int) -> Tape:
    """Bars [begin, end) of a tape of one symbol, everything else as it was."""
    arrays = {f"{name}_ST": getattr(tape, f"{name}_ST")[:, begin:end] for name in ARRAYS}
    extra = {name: array_ST[:, begin:end] for name, array_ST in tape.extra_ST.items()}
    return dataclasses.replace(tape, length_S=np.array([end - begin]), extra_ST=extra, **arrays)


def with_future_noise(tape: Tape, bar: int, *, seed: int = 0) -> Tape:
    """The tape with other prices (of signals too), volumes, quotes and halts in every bar after `bar`.

    Where it has funding and rolls, those are others too.
    Stamps, sessions, and which bars have a funding instant or a roll, which a calendar knows, stay.
    """
    symbols, longest = tape.close_ST.shape
    count = longest - bar - 1
    changed = {name: getattr(tape, f"{name}_ST").copy() for name in ("open", "high", "low", "close", "volume")}
    for s in range(symbols):
        level = int(max(abs(int(tape.close_ST[s, min(bar, int(tape.length_S[s]) - 1)])), 1000))
        noise = _random_bars(count, seed * symbols + s, 3 * level)
        for name, array in changed.items():
            array[s, bar + 1 :] = noise[f"{name}_T"]
    extra = _noisy_extra(tape, bar, changed, seed) if tape.extra_ST else {}
    return dataclasses.replace(tape, extra_ST=extra, **{f"{name}_ST": array for name, array in changed.items()})


def _noisy_extra(tape: Tape, bar: int, price: dict[str, NDArray[Any]], seed: int) -> dict[str, NDArray[Any]]:
    """Extra columns with noise after `bar`, around the noisy prices: quotes keep a spread and lie in their ranges, 0 stays no instant."""
    random = np.random.default_rng([seed, bar])
    shape = tape.close_ST[:, bar + 1 :].shape
    half = {side: random.integers(0, 4, shape) * sign for side, sign in (("bid", -1), ("ask", 1))}
    near_ST = price["close"][:, bar + 1 :] + random.integers(1, 9, shape)
    noise: dict[str, NDArray[Any]] = {
        **{f"{side}_{part}": price[part][:, bar + 1 :] + shift_ST for side, shift_ST in half.items() for part in _PRICES},
        "halted": random.random(shape) < 0.1,
        "funding_rate": random.integers(1, 1_000_000, shape) * random.choice([-1, 1], shape),
        "funding_mark": near_ST,
        "roll_price": near_ST + 50,
        **{f"signal_{part}": price[part][:, bar + 1 :] for part in _PRICES},
    }
    extra = {name: array_ST.copy() for name, array_ST in tape.extra_ST.items()}
    later = {name: array_ST[:, bar + 1 :] for name, array_ST in extra.items()}

    def known(*names: str) -> Any:
        return np.any([later[name] != 0 for name in names if name in later], axis=0)

    events = {"funding_rate": known("funding_rate", "funding_mark"), "roll_price": known("rolls")}
    events["funding_mark"] = events["funding_rate"]
    for name in noise.keys() & later.keys():
        np.copyto(later[name], noise[name], where=events.get(name, True), casting="unsafe")
    return extra


class TooFewBarsError(UsageError):
    """Data in which nothing is known before a first cut."""


def prove_no_look_ahead(feature: Feature, tape: Tape, *, cuts: int = 6, seed: int = 0) -> None:
    """Proves on a tape that a market feature's value at a bar does not depend on later bars.

    At each of `cuts` bars everything after it becomes noise; the values up to it must be the same bits. PluginError names the first value
    that changed. TooFewBarsError where the tape is too short for any value to be known before the first cut.
    """
    label = type(feature).name
    market = assemble([(label, feature)], tape)
    first, last = int(market.start_S.max()), int(tape.length_S.min()) - 2
    if last <= first:
        raise TooFewBarsError(f"{label}: expected a tape longer than {first + 2} bars, found {last + 2}")
    for number, bar in enumerate(np.unique(np.linspace(first, last, cuts).astype(np.int64))):
        noisy = assemble([(label, feature)], with_future_noise(tape, int(bar), seed=seed + number))
        before, after = (each.feature_STF[:, : bar + 1, 0] for each in (market, noisy))
        changed = np.argwhere(before.view(np.uint32) != after.view(np.uint32))
        if changed.size:
            s, t = (int(index) for index in changed[0])
            raise PluginError(
                f"feature '{label}' looks ahead: bars after {bar} changed its value at bar {t} of {tape.symbols[s]} "
                f"from {before[s, t]} to {after[s, t]}"
            )


def prices(tape: Tape, s: int = 0) -> SimpleNamespace:
    """open, high, low, close (currency), volume (lots) and fraction (time of session) of one symbol as float64, for reference formulas."""
    length, quantum = int(tape.length_S[s]), float(tape.instruments[s].quantum)
    bars = {name: getattr(tape, f"{name}_ST")[s, :length] * quantum for name in ("open", "high", "low", "close")}
    return SimpleNamespace(**bars, volume=tape.volume_ST[s, :length], fraction=tape.session_fraction_ST[s, :length].astype(np.float64))


def call(function: Callable[..., Any], values: dict[str, Any]) -> Any:
    """Calls a function of a component, compiled, with the values that it names."""
    return lower(function)(*(values[name] for name in parameters(function)))


_COUNT = 200
_EVEN = np.arange(_COUNT) % 2 == 0

# Legal bars at the edge of what an instrument allows; prices of zero and below are for instruments that say so.
EXTREME_TAPES: dict[str, Callable[[], Tape]] = {
    "constant prices": lambda: make_tape(np.full(_COUNT, 400)),
    "one quantum": lambda: make_tape(np.ones(_COUNT)),
    "large prices": lambda: make_tape(_LARGE + np.arange(_COUNT)),
    "jumps from one quantum to large prices": lambda: make_tape(np.where(_EVEN, 1, _LARGE)),
    "zero volume": lambda: make_tape(400 + np.arange(_COUNT), volume_T=np.zeros(_COUNT)),
    "unknown volume": lambda: make_tape(400 + np.arange(_COUNT), volume_T=np.full(_COUNT, np.nan)),
    "volume now unknown, now large": lambda: make_tape(400 + np.arange(_COUNT), volume_T=np.where(_EVEN, np.nan, 1e15)),
    "volume now zero, now large": lambda: make_tape(400 + np.arange(_COUNT), volume_T=np.where(_EVEN, 0.0, 1e15)),
    "zero prices": lambda: make_tape(np.zeros(_COUNT)),
    "prices through zero": lambda: make_tape(_COUNT // 2 - np.arange(_COUNT)),
    "negative prices": lambda: make_tape(-400 - np.arange(_COUNT) % 7),
    "jumps across zero": lambda: make_tape(np.where(_EVEN, -_LARGE, _LARGE)),
}
