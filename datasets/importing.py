"""Files of any known layout to a checked dataset on disk, streamed: memory is bounded by a chunk, whatever the size of the files.

    files -> rows (formats) -> pieces by symbol (intake) -> series (merge, quotes, watch, resample) -> Parquet parts and a manifest

Nothing is repaired, guessed or dropped without a policy that says so; what was found and done stands in the manifest.
"""

from __future__ import annotations

import dataclasses
import glob
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bellmark import calendar, clock
from bellmark.datasets import stored
from bellmark.datasets.checks import Findings, Policies, refuse_two_series
from bellmark.datasets.hours import Hours
from bellmark.datasets.intake import Intake, StampRules
from bellmark.datasets.resample import span_length
from bellmark.datasets.series import Series
from bellmark.datasets.staging import Sources, Staging
from bellmark.datasets.watch import Watch
from bellmark.errors import DataError, UsageError, did_you_mean, known_list
from bellmark.files import safe_name
from bellmark.instrument import Instrument, exact

if TYPE_CHECKING:
    import polars

    from bellmark.datasets.formats import Options, Rows

Progress = Callable[[str, int, int], None]
# of ImportSettings: said elsewhere in the manifest, or of no meaning for what is in it
_ELSEWHERE = ("format", "name", "data_dir", "policies", "replace")
_PEEK_BYTES = 1 << 16
ADJUSTED = ("split", "split_dividend")
ADJUSTED_STEPS, KEPT_STEPS = 10_000, 100  # of a tick, to which prices are kept that lie between ticks: adjusted ones, and others


@dataclass(frozen=True)
class ImportSettings:
    """What is asked of an import beside how the files are read.

    format: name of a layout, or auto. name: of the dataset, empty = after the first file. instrument: known instrument or TOML file,
    empty = none. overrides: settings of the instrument by name. policies: of the checks. bar, close_time, price: see `StampRules`.
    resample: length of longer bars to make. quotes: whether quotes are kept. bid, ask: files of bars of one side each, joined by their
    stamps. funding, actions, factors: further files. replace: an existing dataset.
    """

    format: str = "auto"
    name: str = ""
    data_dir: Path = Path(stored.FOLDER)
    instrument: str = ""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    policies: Policies = field(default_factory=Policies)
    bar: str = ""
    resample: str = ""
    close_time: str = ""
    price: str = "mid"
    quotes: bool = True
    bid: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    funding: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    factors: tuple[str, ...] = ()
    replace: bool = False


@dataclass(frozen=True)
class ImportReport:
    """Where a dataset lies and what its manifest says."""

    path: Path
    manifest: dict[str, Any]

    @property
    def warnings(self) -> list[str]:
        """What a person should look at before using the data."""
        return warnings_of(self.manifest)


def import_files(files: Sequence[str | Path], settings: ImportSettings, options: Options, progress: Progress | None = None) -> ImportReport:
    """Imports files into the folder of datasets and returns what was found.

    Several files are joined in time order; rows that are in two of them are kept once where they are equal and refused where they are not.
    A failure leaves nothing behind. `progress` is called as progress(stage, done, total): bytes in stage "reading", rows in "writing".
    """
    if bool(settings.bid) != bool(settings.ask):
        raise UsageError("--bid, --ask: the bars of one side need those of the other; the bars of one side alone are a FILE")
    paths = expand([*files, *settings.bid, *settings.ask])
    name = settings.name or default_name(paths[0])
    with stored.new_dataset(settings.data_dir, name, settings.replace) as folder, _scratch(folder) as scratch:
        manifest = _Import(paths, name, settings, options, progress).run(folder, Path(scratch))
    return ImportReport(Path(settings.data_dir) / name, manifest)


def _scratch(folder: Path) -> Any:
    """Beside the dataset: the pieces are as large as the data, and a temporary folder may be in memory."""
    return tempfile.TemporaryDirectory(dir=folder, prefix=".pieces-")


def expand(files: Iterable[str | Path]) -> list[Path]:
    """Paths of files and of patterns such as 'ES_*.csv' (sorted by name); a file twice, a folder or nothing found is refused."""
    found: list[Path] = []
    for given in files:
        text = str(given)
        path = _path(text)
        if path.is_file():
            found.append(path)
        elif path.is_dir():
            raise UsageError(f"{text}: expected a file, found a folder; give its files, as in '{text}/*.csv'")
        elif any(mark in text for mark in "*?["):
            matches = sorted(match for match in glob.glob(str(path), recursive=True) if Path(match).is_file())
            if not matches:
                raise UsageError(f"{text}: no file has such a name")
            found += [Path(match) for match in matches]
        else:
            near = [other.name for other in path.parent.glob("*")] if path.parent.is_dir() else []
            raise UsageError(f"{text}: no such file{did_you_mean(path.name, near)}")
    if not found:
        raise UsageError("expected at least one file to import, found none")
    seen: dict[Path, Path] = {}
    for path in found:
        if path.resolve() in seen:
            raise UsageError(f"{path}: the file is given twice")
        seen[path.resolve()] = path
    return found


def _expanded(files: Sequence[str]) -> list[Path]:
    return expand(files) if files else []


def _path(text: str) -> Path:
    """A path, with ~ as the home folder unless a file has that very name."""
    try:
        return Path(text) if Path(text).exists() else Path(text).expanduser()
    except (OSError, RuntimeError, ValueError):  # a home folder of nobody, a name too long, a zero byte
        return Path(text)


def default_name(path: Path) -> str:
    """The name of a dataset after its first file: ES_2024.csv.gz becomes es_2024."""
    stem = path.name.split(".")[0] if path.name.split(".")[0] else path.stem
    return safe_name(stem).lower()


class _Import:
    """One import on its way."""

    def __init__(self, paths: list[Path], name: str, settings: ImportSettings, options: Options, progress: Progress | None) -> None:
        self.paths, self.name, self.settings, self.options = paths, name, settings, options
        self.progress = progress or (lambda stage, done, total: None)
        self.sources, self.findings = Sources(), Findings()
        self.sides = {path.resolve(): side for side in ("bid", "ask") for path in _expanded(getattr(settings, side))}
        self.adjustment = "unknown"
        self.between_ticks = False  # whether the layout says that its prices are
        self.written = 0
        self.notes: list[str] = []
        self.seen: set[str] = set()  # symbols of the files, where they are chosen here
        self.listing: Any = None
        self._instruments: dict[str, Instrument] = {}

    def run(self, folder: Path, scratch: Path) -> dict[str, Any]:
        from bellmark.datasets import formats

        names = [self._format(path) for path in self.paths]
        self.policies = self.settings.policies
        staging = Staging(scratch)
        rules = StampRules(self.settings.bar, self.settings.close_time, self.settings.price, self.settings.quotes)
        self.intake = intake = Intake(rules, self.policies, staging, self.sources, self.instrument, self.findings)
        self.states = {path: _state(path) for path in self.paths}
        total = sum(size for size, _ in self.states.values())
        read = 0
        for path, name in self._in_turn(names):
            for rows in formats.open_rows([path], name, self._reader(name)):
                self._adjusted(rows.facts, rows.source)
                rows = self._wanted(rows, name)
                self.notes += [note for note in rows.notes if note not in self.notes]
                intake.take(rows, self.sides.get(path.resolve(), ""))
                self.progress("reading", min(read + rows.read_bytes, total), total)
            read += self.states[path][0]
        intake.finish()
        symbols = staging.symbols()
        self._refuse_unknown(symbols)
        if not symbols:
            more = "; the ticks end before their first bar is over, --on unfinished_bar=keep takes it as it is"
            told = more if self.findings.count("unfinished_bar") else ""
            raise DataError(f"{self.paths[0]}: the file{'s hold' if len(self.paths) > 1 else ' holds'} no bars{told}")
        beside = self._beside(folder, symbols)
        written = {symbol: self._write(folder, stem, symbol, staging, beside) for symbol, stem in stored.stems(symbols).items()}
        beside.check_span(written)
        return stored.write_manifest(folder, self._document(written, sorted(set(names)), beside))

    def _reader(self, name: str) -> Options:
        """Options of the reader; which symbols are taken of many files is decided here, since not every file must hold each of them."""
        return replace(self.options, symbol=None, symbols=()) if self._chosen_here(name) else self.options

    def _chosen_here(self, name: str) -> bool:
        from bellmark.datasets import formats

        return len(self.paths) > 1 and (len(self.options.wanted) > 1 or "user" not in formats.FORMATS[name].symbol)

    def _wanted(self, rows: Rows, name: str) -> Rows:
        import polars as pl

        if not self.options.wanted or not self._chosen_here(name):
            return rows
        self.seen.update(rows.frame["symbol"].unique().to_list())
        return replace(rows, frame=rows.frame.filter(pl.col("symbol").is_in(list(self.options.wanted))))

    def _refuse_unknown(self, symbols: list[str]) -> None:
        for symbol in self.options.wanted if self.seen else ():
            if symbol not in symbols and not self.findings.count("unfinished_bar", symbol):
                raise UsageError(f"--symbol: no file holds '{symbol}'{did_you_mean(symbol, self.seen)}{known_list(self.seen)}")

    def _format(self, path: Path) -> str:
        from bellmark.datasets import formats

        name = self.settings.format
        if name != "auto":
            if name not in formats.FORMATS:
                hint = did_you_mean(name, formats.FORMATS) + known_list(formats.FORMATS, 60)
                raise UsageError(f"--format: no format named '{name}'{hint}")
            return name
        fits = list(formats.recognise(path))
        if len(fits) != 1:
            found = f"{len(fits)} fit: {', '.join(fits)}" if fits else "none fits"
            raise UsageError(
                f"{path}: --format auto takes a layout that alone fits, found that {found}; name it, see 'bellmark datasets formats'"
            )
        return fits[0]

    def _in_turn(self, names: list[str]) -> list[tuple[Path, str]]:
        """The files in the order given; files of ticks by their first stamp, since their bars go on from file to file."""
        from bellmark.datasets import formats

        pairs = list(zip(self.paths, names, strict=True))
        if len(pairs) == 1:
            return pairs
        small = replace(self.options, chunk_bytes=_PEEK_BYTES)
        stamps: list[int] = []
        for path, name in pairs:
            given = replace(small, symbol=None, symbols=()) if self._chosen_here(name) else small
            rows = next(iter(formats.open_rows([path], name, given)), None)
            if rows is not None and rows.kind in ("bars", "quote_bars"):
                return pairs
            stamps.append(int(rows.frame["ts"][0]) if rows is not None and rows.frame.height else 0)
        return [pair for _, pair in sorted(zip(stamps, pairs, strict=True), key=lambda both: both[0])]

    def _adjusted(self, facts: Any, source: str) -> None:
        """What the layout says of adjustments; it decides the grid of the prices, so it is the same for all files."""
        found = facts.price_adjustment
        if found == "unknown" and (self.settings.actions or self.settings.factors):
            raise UsageError(
                f"{source}: the layout does not say what its prices are adjusted for, and splits and dividends are given: say --adjustment "
                "raw, split or split_dividend"
            )
        if found != self.adjustment and self._instruments and found != "unknown":
            raise DataError(f"{source}: its prices are adjusted otherwise ({found}) than those of the files before ({self.adjustment})")
        self.adjustment = found if found != "unknown" else self.adjustment
        self.between_ticks = self.between_ticks or facts.off_tick

    def instrument(self, symbol: str) -> Instrument:
        """The instrument of a symbol as the user and the layout say; adjusted prices lie on no tick."""
        if symbol not in self._instruments:
            made = self._base(symbol).with_overrides(dict(self.settings.overrides))
            if self.settings.policies["nonpositive_price"] == "allow":
                made = replace(made, allow_negative_prices=True)
            if self._off_tick and made.data_quantum is None and made.tick_size is not None:
                steps = ADJUSTED_STEPS if self.adjustment in ADJUSTED else KEPT_STEPS
                made = replace(made, data_quantum=float(exact(made.tick_size) / steps))
            self._instruments[symbol] = made
        return self._instruments[symbol]

    @property
    def _off_tick(self) -> bool:
        """Whether prices may lie between ticks: adjusted ones do, and others where the layout or the user says so."""
        return self.adjustment in ADJUSTED or self.between_ticks or self.settings.policies["off_grid"] == "keep"

    def _base(self, symbol: str) -> Instrument:
        if not self.settings.instrument:
            return Instrument(symbol)
        from bellmark import instruments

        if self.listing is None:
            self.listing = instruments.find(self.settings.instrument, symbol)
        made: Instrument = self.listing.instrument(symbol)
        return made

    def _write(self, folder: Path, stem: str, symbol: str, staging: Staging, beside: _Beside) -> dict[str, Any]:
        instrument = self._on_half_ticks(self.instrument(symbol), staging)
        hours = Hours(instrument)
        splits = beside.known_splits(symbol, self.adjustment)
        watch = Watch(symbol, hours, self.intake.length, self._series_policies(instrument), self.findings, self.sources.where, splits)
        series = Series(
            symbol, instrument, staging, self.sources, watch.policies, self.findings, watch, self.settings.resample, self.settings.quotes,
            self.settings.price, self._off_tick,
        )  # fmt: skip
        writer = stored.SymbolWriter(folder, stem)
        for frame in series.frames():
            writer.write(frame)
            self.progress("writing", min(self.written + series.rows, self.intake.rows), self.intake.rows)
        self.written += series.rows
        writer.close()
        refuse_two_series(f"{self.sources.names[0]}: {symbol}", symbol, series.rows, self.policies, self.findings)
        series.check_hours()
        if not writer.rows:
            raise DataError(f"{self.sources.names[0]}: {symbol}: no bar is left after the checks")
        return _entry(series, writer, self.findings, self.intake)

    def _on_half_ticks(self, instrument: Instrument, staging: Staging) -> Instrument:
        """The middle between two quotes on the tick lies on half a tick."""
        middle = self.settings.price == "mid" and not staging.of(instrument.symbol, "bars")
        if not middle or instrument.tick_size is None or instrument.data_quantum is not None:
            return instrument
        return replace(instrument, data_quantum=float(exact(instrument.tick_size) / 2))

    def _series_policies(self, instrument: Instrument) -> Policies:
        if instrument.allow_negative_prices and self.policies["nonpositive_price"] != "allow":
            return replace(self.policies, chosen={**self.policies.chosen, "nonpositive_price": "allow"})
        return self.policies

    def _beside(self, folder: Path, symbols: list[str]) -> _Beside:
        beside = _Beside(self.settings, self.options, symbols, self.findings)
        beside.write(folder)
        return beside

    def _document(self, written: dict[str, dict[str, Any]], names: list[str], beside: _Beside) -> dict[str, Any]:
        facts = self.intake.facts
        longer = self.settings.resample
        length = self.intake.length or next(iter(written.values()))["bar_seconds"] * clock.SECOND
        if longer:
            length = span_length(longer, self.intake.hours(next(iter(written))), "--resample")
        return {
            "name": self.name,
            "format": names[0] if len(names) == 1 else names,
            "sources": [_source(path, self.states.get(path)) for path in (*self.paths, *beside.paths)],
            "options": self._said(),
            "stamp": _one(facts, "stamp"),
            "zone": _one(facts, "zone"),
            "price_adjustment": self.adjustment,
            "bar_seconds": length / clock.SECOND,
            "policies": self.policies.all(),
            "rows_read": self.intake.rows,
            "bars": sum(entry["bars"] for entry in written.values()),
            "cut_at_session_close": self.intake.cut_at_close,
            "symbols": written,
            "findings": [finding.document() for finding in self.findings],
            "notes": [*self.notes, *beside.missing_funding(written, self.listing), *beside.unused(self.adjustment)],
            "market": {} if self.listing is None else dict(self.listing.market),
            "instrument": {} if self.listing is None else self.listing.describe(),
            "suspect": [f"{symbol}: {text}" for symbol, entry in written.items() for text in entry["suspect"]],
            **beside.document(),
            "versions": _versions(),
            "content_hash": stored.sha256_of("\n".join(f"{symbol} {entry['content_hash']}" for symbol, entry in written.items())),
        }

    def _said(self) -> dict[str, Any]:
        """What the user said, without folders: the same files and options give the same manifest."""
        said: dict[str, Any] = {}
        for part, left_out in ((self.options, ("chunk_bytes", "truncated", "bar_seconds")), (self.settings, _ELSEWHERE)):
            plain = type(part)()
            for entry in dataclasses.fields(part):
                value = getattr(part, entry.name)
                if entry.name not in left_out and value != getattr(plain, entry.name):
                    said[entry.name] = dict(value) if isinstance(value, Mapping) else value
        said |= {name: [Path(path).name for path in said[name]] for name in ("bid", "ask", "funding", "actions", "factors") if name in said}
        return said


@dataclass
class _Beside:
    """Funding and corporate actions that go with the bars."""

    settings: ImportSettings
    options: Options
    symbols: list[str]
    findings: Findings
    instants: dict[str, Any] = field(default_factory=dict)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    splits: dict[str, dict[int, float]] = field(default_factory=dict)
    funding_rows: Any = None  # frame of the funding instants

    @property
    def paths(self) -> list[Path]:
        """The files that were read."""
        return _expanded([*self.settings.funding, *self.settings.actions, *self.settings.factors])

    def known_splits(self, symbol: str, adjustment: str) -> dict[int, float]:
        """Ratios of the known splits of a symbol by day, of which adjusted prices have none."""
        return {} if adjustment in ADJUSTED else self.splits.get(symbol, {})

    def unused(self, adjustment: str) -> list[str]:
        """What to say of actions that adjusted prices have in them already."""
        kinds = {"split": "splits", "split_dividend": "splits and dividends"}
        if "actions" not in self.files or adjustment not in kinds:
            return []
        return [f"{kinds[adjustment]} of the actions change nothing: the prices are said to be adjusted for them ({adjustment})"]

    def missing_funding(self, written: Mapping[str, Any], listing: Any) -> list[str]:
        """What to say of funding instants that are missing."""
        if self.funding_rows is None:
            return []
        from bellmark.datasets import funding

        ends = {symbol: [entry[name].removesuffix("Z") for name in ("first", "last")] for symbol, entry in written.items()}
        stamps = {symbol: np.array(texts, "datetime64[ns]").astype(np.int64) for symbol, texts in ends.items()}
        spans = {symbol: (int(first), int(last)) for symbol, (first, last) in stamps.items()}
        return funding.missing(self.funding_rows, spans, None if listing is None else listing.funding_interval_hours)

    def write(self, folder: Path) -> None:
        """Reads the files and writes funding.parquet and actions.parquet."""
        if self.settings.funding:
            self._funding(folder)
        if self.settings.actions or self.settings.factors:
            self._actions(folder)

    def _funding(self, folder: Path) -> None:
        import polars as pl

        from bellmark.datasets import formats

        parts = []
        # of one symbol the rates are its own; of several the files must say which
        options = replace(self.options, symbol=None, symbols=tuple(self.symbols) if len(self.symbols) == 1 else ())
        for path in expand(self.settings.funding):
            fits = [name for name in formats.recognise(path) if "funding" in formats.FORMATS[name].kinds]
            if len(fits) != 1:
                raise UsageError(f"--funding: {path}: expected a file of a known funding layout, found {', '.join(fits) or 'another'}")
            for rows in formats.open_rows([path], fits[0], options):
                parts.append(rows.frame.with_columns(pl.lit(Path(rows.source).name).alias("source")))
        frame = pl.concat(parts, how="diagonal_relaxed").sort("symbol", "ts", maintain_order=True)
        unknown = [name for name in frame["symbol"].unique(maintain_order=True).to_list() if name not in self.symbols]
        if unknown:
            raise UsageError(f"--funding: it holds '{unknown[0]}', the bars {', '.join(self.symbols)}; name one by --symbol")
        if "mark" in frame.columns:
            wrong = frame.filter(pl.col("mark").is_infinite() | (pl.col("mark") <= 0))
            if wrong.height:
                raise DataError(f"{_row_of(wrong, 0)}: expected a mark price above 0, found {wrong['mark'][0]}")
        names = [name for name in ("symbol", "ts", "rate", "mark", "interval_hours") if name in frame.columns]
        once = self._settled_once(frame, names).select(names)
        self.funding_rows = once
        self.instants = {str(symbol): rows["ts"].to_numpy() for (symbol,), rows in once.group_by("symbol", maintain_order=True)}
        self.files["funding"] = stored.write_parquet(folder / "funding.parquet", once)

    def check_span(self, written: Mapping[str, Mapping[str, Any]]) -> None:
        """Refuses funding of a symbol of which no settlement lies within its bars."""
        for symbol, ts_K in self.instants.items():
            first, last = (int(np.datetime64(written[symbol][end].removesuffix("Z"), "ns").astype(np.int64)) for end in ("first", "last"))
            begin = first - round(written[symbol]["bar_seconds"] * clock.SECOND)
            if not np.any((ts_K > begin) & (ts_K <= last + clock.SECOND)):
                raise DataError(
                    f"--funding: none of the {len(ts_K)} settlements of {symbol} lies within its bars: they run from "
                    f"{clock.text(ts_K.min())} to {clock.text(ts_K.max())}, the bars from {clock.text(begin)} to {clock.text(last)}"
                )

    def _settled_once(self, frame: polars.DataFrame, names: Sequence[str]) -> polars.DataFrame:
        """One row for each settlement: equal rows of files that overlap are kept once and counted, others of one moment are refused."""
        import polars as pl

        wrong = frame.filter(~(pl.col("rate").abs() < 1) | pl.col("rate").is_null())
        if wrong.height:
            raise DataError(f"{_row_of(wrong, 0)}: expected a funding rate above -1 and below 1, such as 0.0001, found {wrong['rate'][0]}")
        once = frame.unique(names, keep="first", maintain_order=True)
        twice = once.filter(pl.struct("symbol", "ts").is_duplicated())
        if twice.height:
            a, b = (f"{_row_of(twice, place)} has {twice['rate'][place]:g}" for place in (0, 1))
            moment = clock.text(twice["ts"][0], "ms")
            raise DataError(f"--funding: two rates for {twice['symbol'][0]} at {moment}: {a}, {b}; keep one of them")
        again = frame.join(once.select("source", "row"), on=["source", "row"], how="anti")
        for (symbol,), rows in again.group_by("symbol", maintain_order=True):
            shown = [_row_of(rows, place) for place in range(min(3, rows.height))]
            self.findings.add("duplicate_identical", f"{symbol} funding", "kept once", rows.height, shown)
        return once

    def _actions(self, folder: Path) -> None:
        import polars as pl

        from bellmark.datasets import actions

        found: list[Any] = []
        for path in expand([*self.settings.actions, *self.settings.factors]):
            found += actions.read_actions(path, self.symbols[0] if len(self.symbols) == 1 else "")
        for action in found:
            if action.symbol not in self.symbols:
                raise UsageError(f"--actions: they hold '{action.symbol}', the bars {', '.join(self.symbols)}")
        for symbol in self.symbols:
            known = self.splits.setdefault(symbol, {})
            for action in found:
                if action.symbol == symbol and action.split != 1:
                    known[action.date] = known.get(action.date, 1.0) * float(actions.ratio(action.split))
        table = pl.DataFrame(actions.to_columns(found))
        self.files["actions"] = stored.write_parquet(folder / "actions.parquet", table)

    def document(self) -> dict[str, Any]:
        """For the manifest."""
        return {name: entry for name, entry in self.files.items()}


def _row_of(frame: polars.DataFrame, place: int) -> str:
    return f"{frame['source'][place]}: data row {frame['row'][place]}"


def _entry(series: Series, writer: stored.SymbolWriter, findings: Findings, intake: Intake) -> dict[str, Any]:
    symbol, watch = series.symbol, series.watch
    return {
        "files": writer.files,
        "bars": writer.rows,
        "first": clock.text(writer.first),
        "last": clock.text(writer.last),
        "bar_seconds": watch.length / clock.SECOND,
        "columns": writer.columns,
        "instrument": series.instrument.describe(),
        "duplicates": findings.count("duplicate_identical", symbol),
        "gaps": watch.gaps.document(),
        "zero_volume_bars": watch.zero_volume,
        "flat_zero_volume_bars": watch.flat_zero_volume,
        "unknown_volume_bars": watch.unknown_volume,
        "outside_session": series.outside + intake.outside.get(symbol, 0),
        "cut_at_end": series.cut_at_end,
        "quotes_without_bar": series.quotes_without_bar,
        "calendar": _calendar(watch.hours, writer),
        "suspect": [*watch.splits, *watch.levels],
        "content_hash": writer.content.hexdigest(),
    }


def _calendar(hours: Hours, writer: stored.SymbolWriter) -> dict[str, str]:
    """Which calendar the gaps were counted by, the package it comes from, and years that it does not know."""
    session = hours.session
    if session is None or not session.calendar:
        return {}
    dates = calendar.session_dates(np.array([writer.first, writer.last]), session)
    found = {"name": session.calendar, "package": calendar.version(session), "unknown": calendar.unknown_years(dates, session)}
    return {name: value for name, value in found.items() if value}


def _state(path: Path) -> tuple[int, int]:
    """Size and time of change of a file."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _source(path: Path, before: tuple[int, int] | None = None) -> dict[str, Any]:
    """What the manifest says of a file, which must be the one that was read: it had `before` when reading began."""
    source = {"name": path.name, "bytes": path.stat().st_size, "sha256": stored.file_hash(path)}
    if before is not None and _state(path) != before:
        raise DataError(f"{path}: it was changed while it was read; import it again")
    return source


def _one(facts: Sequence[Any], name: str) -> Any:
    values = list(dict.fromkeys(getattr(one, name) for one in facts))
    return values[0] if len(values) == 1 else values


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    return {name: version(name) for name in ("bellmark", "polars", "numpy")}


def _suspect(text: str) -> str:
    if "split" in text:
        return f"{text}: the dataset is suspect until the split is given in --actions or allowed (--on possible_split=allow)"
    return f"{text}: the dataset is suspect: another unit or instrument? If the prices are true, --on level_jump=allow"


def warnings_of(manifest: Mapping[str, Any]) -> list[str]:
    """What a person should look at, in lines: possible splits first, then outliers, stale prices, gaps that moved the price."""
    found = [_suspect(text) for text in manifest["suspect"]]
    found += manifest.get("notes", ())
    unknown = [entry.get("calendar", {}).get("unknown") for entry in manifest["symbols"].values()]
    found += dict.fromkeys(text for text in unknown if text)
    for finding in manifest["findings"]:
        if finding["action"] == "reported" and finding["check"] not in ("possible_split", "level_jump"):
            found.append(f"{finding['symbol']}: {finding['check']}: {finding['count']} found, first {finding['first'][0]}")
    return found
