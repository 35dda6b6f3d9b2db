"""Market features: from the bars of a tape to one float32 column each, and the normalisation fitted on training windows.

A market feature gives a `row` function (value of bar t from the bars up to t) or a `scan` function (one pass in time order with state).
Both are wired by parameter name, compiled, and run once over each symbol while a run is assembled. A portfolio feature gives a `lane`
function, which the environment calls; `split` tells them apart.

Available to row and scan: t, open_T high_T low_T close_T (int64 price quanta), volume_T (float64 lots, NaN where unknown), price_quantum
(currency), the settings, and for base bars only session_fraction_T, session_bar_T and session_left_T. A function over higher bars sees
completed ones alone: bar t of the base sees the last group or session that had ended by the close of t. Where the data have prices
adjusted for signals (of rolls, splits, dividends), features see those, while orders are filled at the traded ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bellmark import backend
from bellmark.codegen import build, call_text, compile_error, parameters
from bellmark.component import Feature, SettingInfo, settings_of
from bellmark.errors import BellmarkError, DataError, PluginError
from bellmark.tape import Tape, higher_bars

_FUNCTIONS = ("row", "scan", "lane")
_PRICES = ("open_T", "high_T", "low_T", "close_T", "volume_T")
_SESSION = ("session_fraction_T", "session_bar_T", "session_left_T")
_STATE_START = {"float64": "0.0", "float32": "float32(0.0)", "int64": "0"}

# Below these a column is constant: a millionth of its mean is about 16 steps of float32, so what is left is rounding.
_CONSTANT_RELATIVE = 1e-6
_CONSTANT_ABSOLUTE = 1e-12


@dataclass(frozen=True)
class MarketFeatures:
    """The market features of a tape.

    labels: their names in the profile (F); feature_STF: float32 raw values, NaN before a feature is known and in the padding;
    start_S: the first bar of each symbol at which every feature is known (its length where none is); notes: symbols that are too short.
    """

    labels: tuple[str, ...]
    feature_STF: NDArray[np.float32]
    start_S: NDArray[np.int64]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Normalisation:
    """What turns raw features into observations: (feature - mean_LF[l]) * scale_LF[l].

    scale is 1 / standard deviation (population) over the learner's training windows. A feature that is constant there has scale 0: it
    stays 0 for ever, whatever it does later (a scale of 1 / epsilon would make 1e4 of a move of 1e-4), and `warnings` names it.
    constant_LF marks these columns.
    """

    mean_LF: NDArray[np.float32]
    scale_LF: NDArray[np.float32]
    constant_LF: NDArray[np.bool_]
    warnings: tuple[str, ...]


def function_kind(feature: Feature, label: str = "") -> str:
    """Which function a feature gives: "row", "scan" or "lane"; PluginError unless it is exactly one."""
    given = [name for name in _FUNCTIONS if callable(getattr(feature, name, None))]
    if len(given) != 1:
        found = " and ".join(given) if given else "none"
        raise PluginError(f"{_where(label, feature)}: expected one function out of row, scan and lane, found {found}")
    return given[0]


def split(features: Sequence[tuple[str, Feature]]) -> tuple[list[tuple[str, Feature]], list[tuple[str, Feature]]]:
    """Labelled features as (market features, portfolio features), each in the given order, which is the order of the columns."""
    market: list[tuple[str, Feature]] = []
    portfolio: list[tuple[str, Feature]] = []
    for label, feature in features:
        (portfolio if function_kind(feature, label) == "lane" else market).append((label, feature))
    return market, portfolio


def assemble(features: Sequence[tuple[str, Feature]], tape: Tape) -> MarketFeatures:
    """Computes the market features among `features` (portfolio features are left to the environment) for every symbol of a tape.

    PluginError: a function that does not compile or gives a value that is not finite after its warm-up, with feature, symbol and bar.
    A symbol with too few bars for a feature has no usable bar and is noted. DataError: no symbol has enough.
    """
    market, _ = split(features)
    columns = [_Column(label, feature) for label, feature in market]
    symbols, longest = tape.close_ST.shape
    feature_STF = np.full((symbols, longest, len(columns)), np.nan, np.float32)
    start_S = np.zeros(symbols, np.int64)
    short: dict[int, str] = {}
    for s in range(symbols):
        views: dict[str, _View] = {}
        for f, column in enumerate(columns):
            if column.timeframe not in views:
                views[column.timeframe] = _view(tape, s, column.timeframe)
            value_T, start = column.fill(views[column.timeframe], tape, s)
            if start == len(value_T):
                short.setdefault(s, column.too_short(tape, s))
            feature_STF[s, : len(value_T), f] = value_T
            start_S[s] = max(start_S[s], start)
    if len(short) == symbols:
        raise DataError(short[0])
    notes = tuple(f"{text}; it is left out" for text in short.values())
    return MarketFeatures(tuple(column.label for column in columns), feature_STF, start_S, notes)


def fit_normalisation(market: MarketFeatures, window_LS2: NDArray[np.int64]) -> Normalisation:
    """Mean and scale of each feature and learner over that learner's training windows: bars [begin, end) of every symbol.

    Bars before `start_S` are left out. Sums run in float64 in time order, in two passes; the bits depend on neither L nor threads.
    DataError where a learner's windows hold no bar with all features known.
    """
    window_LS2 = np.asarray(window_LS2, np.int64)
    learners, columns = len(window_LS2), len(market.labels)
    mean_LF, deviation_LF = np.zeros((learners, columns)), np.zeros((learners, columns))
    known_LS2 = window_LS2.copy()
    known_LS2[:, :, 0] = np.maximum(known_LS2[:, :, 0], market.start_S)
    known_LS2[:, :, 1] = np.minimum(np.maximum(known_LS2[:, :, 1], known_LS2[:, :, 0]), market.feature_STF.shape[1])
    empty = np.flatnonzero((known_LS2[:, :, 1] - known_LS2[:, :, 0]).sum(axis=1) <= 0)
    if columns and empty.size:
        first = int(market.start_S.min())
        raise DataError(f"features: learner {empty[0]} has no training bar at which all features are known (the first is bar {first})")
    distinct, which = np.unique(known_LS2, axis=0, return_inverse=True)
    for w, window_S2 in enumerate(distinct if columns else ()):
        mean_F, deviation_F = np.zeros(columns), np.zeros(columns)
        _fit(market.feature_STF, window_S2, mean_F, deviation_F)
        mean_LF[which.ravel() == w], deviation_LF[which.ravel() == w] = mean_F, deviation_F
    unknown = np.flatnonzero(~np.isfinite(deviation_LF).all(axis=0))
    if unknown.size:
        raise DataError(f"features.{market.labels[unknown[0]]}: the training windows hold values that are not finite or too large")
    constant_LF = (deviation_LF <= _CONSTANT_RELATIVE * np.abs(mean_LF)) | (deviation_LF <= _CONSTANT_ABSOLUTE)
    scale_LF = np.where(constant_LF, 0.0, 1.0 / np.where(constant_LF, 1.0, deviation_LF))
    warnings = tuple(
        f"features.{label}: constant over the training window of {_learners(constant_LF[:, f])}; it is passed on as 0"
        for f, label in enumerate(market.labels)
        if constant_LF[:, f].any()
    )
    return Normalisation(mean_LF.astype(np.float32), scale_LF.astype(np.float32), constant_LF, warnings)


@backend.compile
def _fit(feature_STF, window_S2, mean_F, deviation_F):  # type: ignore[no-untyped-def]
    symbols, columns = window_S2.shape[0], mean_F.shape[0]
    count = 0
    for s in range(symbols):
        count += window_S2[s, 1] - window_S2[s, 0]
        for t in range(window_S2[s, 0], window_S2[s, 1]):
            for f in range(columns):
                mean_F[f] += float(feature_STF[s, t, f])
    for f in range(columns):
        mean_F[f] /= count
    for s in range(symbols):
        for t in range(window_S2[s, 0], window_S2[s, 1]):
            for f in range(columns):
                deviation = float(feature_STF[s, t, f]) - mean_F[f]
                deviation_F[f] += deviation * deviation
    for f in range(columns):
        deviation_F[f] = np.sqrt(deviation_F[f] / count)


@dataclass(frozen=True)
class _View:
    """The bars of one symbol at one timeframe, and for each base bar the last of them that was complete (-1 for none)."""

    arrays: tuple[NDArray[Any], ...]  # in the order of _PRICES, then _SESSION (empty for higher bars)
    completed_T: NDArray[np.int64]
    has_session: bool

    @property
    def length(self) -> int:
        return len(self.arrays[0])


def _view(tape: Tape, s: int, timeframe: str) -> _View:
    length = int(tape.length_S[s])
    if timeframe != "bar":
        bars = higher_bars(tape, s, timeframe, signals=True)
        prices = (bars.open_T, bars.high_T, bars.low_T, bars.close_T, bars.volume_T)
        none = (np.empty(0, np.float32), np.empty(0, np.int32), np.empty(0, np.int32))
        return _View((*(_own(array) for array in prices), *none), np.asarray(bars.completed_T, np.int64), has_session=False)
    columns: list[NDArray[Any]] = [tape.signal_price(name) for name in ("open", "high", "low", "close")]
    columns += [tape.volume_ST, tape.session_fraction_ST, tape.session_bar_ST, tape.session_left_ST]
    return _View(tuple(_own(array[s, :length]) for array in columns), np.arange(length), has_session=True)


def _own(array: NDArray[Any]) -> NDArray[Any]:
    return np.array(array, order="C")  # a copy: one compiled type, and a plugin that writes to its input harms nobody


class _Column:
    """One market feature, wired and compiled."""

    def __init__(self, label: str, feature: Feature) -> None:
        self.label, self.feature = label, feature
        self.where = _where(label, feature)
        self.kind = function_kind(feature, label)
        self.function = getattr(feature, self.kind)
        self.timeframe = _timeframe(feature, self.where)
        self.warm_up = _warm_up(feature, self.where)
        self.infos = settings_of(type(feature))
        self.setting_float, self.setting_int = _setting_arrays(feature, self.infos)
        self.entry: Any = None

    def fill(self, view: _View, tape: Tape, s: int) -> tuple[NDArray[np.float32], int]:
        """The values of the base bars of symbol s, NaN where unknown, and the first known bar (their number where none is)."""
        if self.entry is None:
            self.entry = self._build(view.has_session)
        known = view.completed_T >= self.warm_up
        if not known.any():
            return np.full(len(known), np.nan, np.float32), len(known)
        value_H = np.full(view.length, np.nan, np.float32)
        quantum = float(tape.instruments[s].quantum)
        try:
            self.entry(self.warm_up, view.length, *view.arrays, quantum, self.setting_float, self.setting_int, value_H)
        except BellmarkError:
            raise
        except Exception as error:
            if type(error).__module__.startswith("numba."):
                raise compile_error(error, self.where) from error
            raise PluginError(f"{self.where}: {type(error).__name__}: {error}") from error
        value_T = np.where(known, value_H[np.maximum(view.completed_T, 0)], np.float32(np.nan))
        bad = np.flatnonzero(known & ~np.isfinite(value_T))
        if bad.size:
            raise PluginError(self._not_finite(value_T, int(bad[0]), tape, s))
        return value_T, int(np.argmax(known))

    def too_short(self, tape: Tape, s: int) -> str:
        """What to say of a symbol that this feature needs more bars of."""
        need = f"{self.warm_up + 1} completed {_bars_text(self.timeframe)}"
        return f"{tape.symbols[s]}: {int(tape.length_S[s])} bars are too few for features.{self.label}, which needs {need}"

    def _not_finite(self, value_T: NDArray[np.float32], t: int, tape: Tape, s: int) -> str:
        stamp = np.datetime64(int(tape.ts_ST[s, t]), "ns").astype("datetime64[s]")
        return f"{self.where}: expected a finite value after its warm-up, found {value_T[t]} for {tape.symbols[s]} at bar {t} ({stamp} UTC)"

    def _build(self, has_session: bool) -> Any:
        """Generated code: loads the settings, then calls the function for each bar."""
        loads, available = _settings_text(self.feature, self.infos)
        available |= {name: name for name in ("t", *_PRICES, *(_SESSION if has_session else ()), "price_quantum")}
        arguments = ", ".join(("first", "length", *_PRICES, *_SESSION, "price_quantum", "setting_float", "setting_int", "value_T"))
        body = _scan_body(self) if self.kind == "scan" else ["for t in range(first, length):", "    value_T[t] = function({})"]
        if self.kind == "scan":
            available |= {name: f"state_{name}" for name in self.feature.state}
        call = call_text(self.function, available, self.where)
        text = "\n    ".join([f"def entry({arguments}):", *loads, *body]).replace("function({})", f"function({call})") + "\n"
        return build(f"feature_{type(self.feature).name}", text, {"function": self.function, "float32": np.float32})


def _scan_body(column: _Column) -> list[str]:
    state = column.feature.state
    for name, dtype in state.items():
        if dtype not in _STATE_START:
            raise PluginError(f"{column.where}: state '{name}': expected one of {', '.join(_STATE_START)}, found '{dtype}'")
    names = [f"state_{name}" for name in state]
    return [
        *(f"{name} = {_STATE_START[dtype]}" for name, dtype in zip(names, state.values(), strict=True)),
        "for t in range(length):",
        f"    {', '.join(['value', *names])} = function({{}})",
        "    if t >= first:",
        "        value_T[t] = value",
    ]


def _settings_text(feature: Feature, infos: list[SettingInfo]) -> tuple[list[str], dict[str, str]]:
    """Lines that load the settings that the function names, and the local name (or the constant) of every setting."""
    wanted = parameters(getattr(feature, function_kind(feature)))
    lines, available = [], {}
    for k, info in enumerate(infos):
        if info.static:
            available[info.name] = repr(_code(info, getattr(feature, info.name)))
            continue
        available[info.name] = f"setting_{info.name}"
        if info.name in wanted:
            source = f"setting_float[{k}]" if info.type is float else f"setting_int[{k}]"
            lines.append(f"setting_{info.name} = {source}{' != 0' if info.type is bool else ''}")
    return lines, available


def _setting_arrays(feature: Feature, infos: list[SettingInfo]) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    setting_float, setting_int = np.zeros(len(infos)), np.zeros(len(infos), np.int64)
    for k, info in enumerate(infos):
        code = _code(info, getattr(feature, info.name))
        if info.type is float:
            setting_float[k] = code
        elif isinstance(code, int):
            setting_int[k] = code
    return setting_float, setting_int


def _code(info: SettingInfo, value: Any) -> Any:
    return info.choices.index(str(value)) if info.choices else value


def _timeframe(feature: Feature, where: str) -> str:
    timeframe = str(getattr(feature, "timeframe", "bar"))
    if timeframe in ("bar", "session") or (timeframe.isdecimal() and int(timeframe) > 1):
        return timeframe
    raise PluginError(f"{where}.timeframe: expected 'bar', 'session' or a number of bars above 1, found '{timeframe}'")


def _warm_up(feature: Feature, where: str) -> int:
    try:
        bars = feature.warm_up()
    except (Exception, SystemExit) as error:
        raise PluginError(f"{where}: warm_up raised {type(error).__name__}: {error}") from error
    if not isinstance(bars, int) or bars < 0:
        raise PluginError(f"{where}: warm_up: expected an int >= 0, found {bars!r}")
    return bars


def _bars_text(timeframe: str) -> str:
    return {"bar": "bars", "session": "sessions"}.get(timeframe, f"groups of {timeframe} bars")


def _where(label: str, feature: Feature) -> str:
    cls = type(feature)
    return f"features.{label or cls.name}: feature '{cls.name}' ({cls.__module__}.{cls.__qualname__})"


def _learners(constant_L: NDArray[np.bool_]) -> str:
    if constant_L.all():
        return "every learner" if len(constant_L) > 1 else "the learner"
    names = [str(index) for index in np.flatnonzero(constant_L)]
    return ("learners " if len(names) > 1 else "learner ") + ", ".join(names)
