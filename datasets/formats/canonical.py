"""From the cells of a table to canonical rows: which column is what, symbols, stamps, numbers. The same for text and for Parquet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bellmark.bars import PRICES
from bellmark.datasets.formats.cells import NumberForm, ask_marks, divided, flags, numbers, symbols
from bellmark.datasets.formats.layout import QUOTES, Kind, Options, RowFacts, Rows
from bellmark.datasets.formats.streams import Member, Meter, describe
from bellmark.datasets.stamps import Place, Seen, StampForm, Stamps, same_zone, stamps_of
from bellmark.errors import DataError, UsageError, did_you_mean

if TYPE_CHECKING:
    import polars

PRICED = (*PRICES, *QUOTES)
_SHOWN_SYMBOLS = 24


@dataclass(frozen=True)
class Layout:
    """How a table is laid out.

    columns: canonical name -> name of the column in the file, or names of which it has one; names are compared without case, blanks and
    pointed brackets around them. Those in `optional` may be absent. order: for files without a header, the names of all columns; several
    where the count of fields tells them apart. header: "always", "never" or "maybe" (where the first cell of a header is no number).
    preamble: pattern of lines before the header. stamp: columns whose cells, joined by a blank, are the
    stamp; of those, the ones that are absent are left out. forms: as in `StampForm`. divisor: prices are integers of 1 / divisor.
    unknown_volume: the number that stands for no volume. stamp_said: whether the user must say what the stamp of a bar is. doubtful: of
    "stamp" and "zone", what nobody checked in `facts`: the user may say otherwise, and it is noted; what else `facts` say is refused.
    marks_asked: whether the user must say what a dot in numbers is where it cannot be told (`cells.ask_marks`).
    cells: changes the cells of a chunk before they are read; columns whose names begin with _ are for it and `finish` alone. facts: what
    is known of every file; finish: what the cells of a chunk say beside it, the same in all chunks. name_of: the symbol where no column is.
    """

    kind: Kind
    columns: dict[str, str | tuple[str, ...]]
    stamp: tuple[str, ...]
    optional: tuple[str, ...] = ()
    order: tuple[tuple[str, ...], ...] = ()
    header: str = "always"
    separator: str = ","
    preamble: str = ""
    forms: tuple[str, ...] = ()
    divisor: float = 1.0
    unknown_volume: float | None = None
    stamp_said: bool = False
    doubtful: tuple[str, ...] = ()
    marks_asked: bool = False
    facts: RowFacts = field(default_factory=lambda: RowFacts("open"))
    cells: Callable[[Cells], Cells] | None = None
    finish: Callable[[Cells, RowFacts], RowFacts] | None = None
    name_of: Callable[[Member], str | None] | None = None


@dataclass(frozen=True)
class Cells:
    """The cells of a chunk by canonical name, `stamp` beside them; names: of the columns in the file; zone: of the stamps, as they say."""

    frame: polars.DataFrame
    names: dict[str, str]
    place: Place
    options: Options
    zone: str = ""

    def with_columns(self, *columns: Any) -> Cells:
        """The same with some columns changed."""
        return replace(self, frame=self.frame.with_columns(*columns))

    def where(self, filled: Any) -> Cells:
        """The rows that an expression is true of; they keep their numbers."""
        import polars as pl

        rows = self.place.rows
        if rows is None:
            rows = pl.int_range(self.place.first_row, self.place.first_row + self.frame.height, eager=True, dtype=pl.Int64)
        kept = self.frame.with_columns(rows.alias("_row")).filter(filled)
        return replace(self, frame=kept.drop("_row"), place=replace(self.place, rows=kept["_row"]))

    def without(self, *names: str) -> Cells:
        """The same without some columns."""
        return replace(self, frame=self.frame.drop(names))


class Chosen:
    """Takes the symbols that the user named, and remembers which there were."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._there: dict[str, None] = {}

    def take(self, frame: polars.DataFrame) -> polars.DataFrame:
        """The rows of the named symbols; all where none is named."""
        import polars as pl

        wanted = self.options.wanted
        if not wanted or not frame.height:
            return frame
        there = frame["symbol"].unique(maintain_order=True).to_list()
        self._there.update(dict.fromkeys(there))
        return frame if all(name in wanted for name in there) else frame.filter(pl.col("symbol").is_in(list(wanted)))

    def wants(self, symbol: str) -> bool:
        """Whether a series of one symbol is to be read."""
        self._there[symbol] = None
        return not self.options.wanted or symbol in self.options.wanted

    def check(self, source: object) -> None:
        """Refuses a named symbol that the file did not have."""
        if self.options.absent_symbol == "skip":
            return
        for name in self.options.wanted:
            if self._there and name not in self._there:
                known = list(self._there)
                more = f" and {len(known) - _SHOWN_SYMBOLS} more" if len(known) > _SHOWN_SYMBOLS else ""
                have = ", ".join(known[:_SHOWN_SYMBOLS]) + more
                raise DataError(f"{source}: it holds no symbol '{name}'{did_you_mean(name, known)} (has: {have})")


def folded(name: str) -> str:
    """A name of a column as names are compared."""
    return name.strip().strip("<>").strip().casefold()


class Fields:
    """Which column of a file is what. places: by canonical name, and `stamp0`, `stamp1`, ... for the parts of the stamp."""

    def __init__(self, layout: Layout, names: list[str], source: str, options: Options) -> None:
        self.layout, self.names, self.source, self.options = layout, names, source, options
        self._folded = [folded(name) for name in names]
        # names that the user wrote out; in a profile a column may be named by a default
        self._explicit = {column for name, column in options.columns.items() if not options.in_profile or column != name}
        self._explicit |= {column for column in (options.stamp_column, options.date_column, options.time_column) if column}
        for wanted in layout.columns.values():  # before any is missed: a name that is there twice may be the reason
            for column in (wanted,) if isinstance(wanted, str) else wanted:
                self._place(column)
        self.places = {name: place for name in layout.columns if (place := self._find(name)) is not None}
        for number, name in enumerate(layout.stamp):
            place = self._place(name)
            if place is None and number == 0:
                self._missing("stamp", name)
            elif place is not None:
                self.places[f"stamp{number}"] = place

    def cells(self, columns: list[polars.Series], place: Place) -> Cells:
        """The cells of a chunk whose columns are in the order of the file."""
        import polars as pl

        names = {name: self.names[number] for name, number in self.places.items()}
        found = [columns[number].alias(name) for name, number in self.places.items() if not name.startswith("stamp")]
        parts = [columns[number].alias(name) for name, number in self.places.items() if name.startswith("stamp")]
        stamp = parts[0]
        if len(parts) > 1:
            texts = [pl.col(part.name).cast(pl.String).str.strip_chars() for part in parts]
            stamp = pl.DataFrame(parts).select(pl.concat_str(texts, separator=" ").alias("stamp"))["stamp"]
        names["stamp"] = names["stamp0"]
        cells = Cells(pl.DataFrame([stamp.alias("stamp"), *found]), names, place, self.options)
        return self.layout.cells(cells) if self.layout.cells else cells

    def _find(self, name: str) -> int | None:
        wanted = self.layout.columns[name]
        choices = (wanted,) if isinstance(wanted, str) else wanted
        for column in choices:
            place = self._place(column)
            if place is not None:
                return place
        if name not in self.layout.optional:
            self._missing(name, choices[0])
        return None

    def _place(self, column: str) -> int | None:
        places = [place for place, name in enumerate(self._folded) if name == folded(column)]
        if column in self._explicit:
            places = [place for place in places if self.names[place] == column] or places
        if len(places) > 1:
            one, other = (self.names[place] for place in places[:2])
            raise DataError(f"{self.source}: two columns are named {one!r}{'' if one == other else f' but for case or marks: {other!r}'}")
        return places[0] if places else None

    def _missing(self, name: str, column: str) -> None:
        shown = ", ".join(repr(name) for name in self.names)
        setting = f"data.{name}_column" if self.options.in_profile else name
        raise DataError(f"{self.source}: {setting}: no column {column!r}{did_you_mean(column, self.names)} (the file has: {shown})")


class Canonical:
    """Makes rows of the cells of one source, chunk after chunk."""

    def __init__(self, layout: Layout, member: Member, options: Options, meter: Meter, chosen: Chosen) -> None:
        self.layout, self.member, self.options, self.meter, self.chosen = layout, member, options, meter, chosen
        self.form = NumberForm.of(options)
        self.seen = Seen()
        self.facts: RowFacts | None = None
        self._notes: dict[str, None] = {}

    def rows(self, cells: Cells | None, first_row: int, notes: tuple[str, ...] = ()) -> Rows:
        """The rows of one chunk."""
        import polars as pl

        if cells is None:
            empty = pl.DataFrame(schema={"row": pl.Int64, "ts": pl.Int64, "symbol": pl.String})
            return self._made(empty, first_row, notes)
        count = cells.frame.height
        symbol = self._symbol(cells)
        stamps = self._stamps(cells, symbol)
        columns = [self._column(cells, name) for name in cells.frame.columns if name not in ("stamp", "symbol") and name[0] != "_"]
        self._learn(cells, stamps)
        row = pl.int_range(first_row, first_row + count, eager=True, dtype=pl.Int64) if cells.place.rows is None else cells.place.rows
        name = pl.repeat(self._name(), count, eager=True) if symbol is None else symbol
        frame = pl.DataFrame([row.alias("row"), pl.Series("ts", stamps.utc_T), name.alias("symbol"), *columns])
        return self._made(frame if symbol is None else self.chosen.take(frame), first_row, notes)

    def _made(self, frame: polars.DataFrame, first_row: int, notes: tuple[str, ...]) -> Rows:
        facts = self.facts or replace(self.layout.facts, stamp=self.layout.facts.stamp or self.options.stamp or "")
        notes, self._notes = (*self._notes, *notes), {}
        return Rows(self.layout.kind, frame, self.member.name, first_row, self.meter.read, self.meter.total, facts, notes)

    def _symbol(self, cells: Cells) -> polars.Series | None:
        if "symbol" not in cells.frame.columns:
            return None
        return symbols(cells.frame["symbol"], cells.names.get("symbol", "symbol"), cells.place)

    def _name(self) -> str:
        """The symbol of a file that has no column of it."""
        given = self.layout.name_of(self.member) if self.layout.name_of else None
        return given if given is not None and not self.options.wanted else self.options.the_symbol

    def _column(self, cells: Cells, name: str) -> polars.Series:
        import polars as pl

        column, shown = cells.frame[name], cells.names.get(name, name)
        if name == "halted":
            return flags(column, shown, cells.place).alias(name)
        found = numbers(column, shown, self.form, cells.place, self.options).alias(name)
        if self.layout.marks_asked and self.facts is None:
            ask_marks(column, shown, cells)
        if self.layout.divisor != 1.0 and name in PRICED:
            found = divided(found, self.layout.divisor)
        if name == "volume" and self.layout.unknown_volume is not None:
            found = pl.select(pl.when(found != self.layout.unknown_volume).then(found).alias(name)).to_series()
        return found

    def _stamps(self, cells: Cells, symbol: polars.Series | None) -> Stamps:
        options, layout = self.options, self.layout
        forms = (options.stamp_format,) if options.stamp_format else layout.forms
        known = cells.zone or layout.facts.zone
        zone = options.zone or known
        if options.zone and known and self.facts is None and not same_zone(options.zone, known):
            self._contradicted("zone", options.zone, known)
        form = StampForm(forms, zone, options.repeated_hour, layout.kind in ("ticks", "quotes"), options.said)
        return stamps_of(cells.frame["stamp"].alias(cells.names["stamp"]), form, cells.place, self.seen, symbol)

    def _learn(self, cells: Cells, stamps: Stamps) -> None:
        """The facts of the first chunk; the chunks after it must not say otherwise."""
        facts = self.facts or self._first_facts(stamps)
        facts = replace(facts, zone=cells.zone or facts.zone)
        found = self.layout.finish(cells, facts) if self.layout.finish else facts
        if self.facts is not None and found != facts:
            raise DataError(f"{cells.place.row(0)}: what the file says of itself changes here: {_difference(facts, found)}")
        self.facts = found

    def _first_facts(self, stamps: Stamps) -> RowFacts:
        facts, options = self.layout.facts, self.options
        facts = replace(facts, zone=(options.zone or facts.zone) if stamps.local else "")
        if facts.bar_seconds is None:
            facts = replace(facts, bar_seconds=options.bar_seconds)
        if facts.order == "descending" and stamps.utc_T.size and stamps.utc_T[0] < stamps.utc_T[-1]:
            facts = replace(facts, order="ascending")  # somebody sorted it
        if self.layout.kind in ("bars", "quote_bars"):
            facts = replace(facts, stamp=self._meaning(stamps))
        return facts

    def _meaning(self, stamps: Stamps) -> str:
        """A date alone is the day of a session, unless the user says that it is the open of its bar."""
        given = self.options.stamp
        if given not in (None, "open", "close"):
            raise UsageError(f"{self.options.said('stamp')}: expected open or close, found {given!r}")
        if stamps.date_only and given != "open":
            return "session"
        if self.layout.facts.stamp == "session" and given is None:
            raise DataError(f"{self.member.name}: expected dates alone as stamps, found times of day; is it another layout?")
        if given is None and self.layout.stamp_said:
            raise UsageError(
                f"{self.member.name}: the file does not say whether a stamp is the open or the close of its bar; say "
                f"{self.options.said('stamp')} open or {self.options.said('stamp')} close"
            )
        known = self.layout.facts.stamp
        if given is not None and not self.layout.stamp_said and known in ("open", "close") and given != known and not stamps.date_only:
            self._contradicted("stamp", given, known)
        return given or known

    def _contradicted(self, name: str, given: str, known: str) -> None:
        """What the layout says is not overruled without a word."""
        option = self.options.said(name)
        what = "the zone of its stamps is" if name == "zone" else "a stamp of it is the bar's"
        if name not in self.layout.doubtful:
            raise UsageError(f"{self.member.name}: {option} {given} contradicts the layout, which says that {what} {known}; leave it out")
        self._notes[f"{self.member.name}: {option} {given} was taken, where the layout says (unchecked) that {what} {known}"] = None


def _difference(before: RowFacts, after: RowFacts) -> str:
    pairs = [(name, getattr(before, name), getattr(after, name)) for name in RowFacts.__dataclass_fields__]
    return ", ".join(f"{name} from {old!r} to {new!r}" for name, old, new in pairs if old != new)


def one_value(cells: Cells, name: str, meaning: str) -> str:
    """The value that a column has in every row of a chunk; several are an error with the row where they begin."""
    column = cells.frame[name].str.strip_chars().fill_null("")
    other = (column != column[0]).arg_true()
    if len(other):
        row = int(other[0])
        raise DataError(
            f"{cells.place.row(row)}, column {cells.names[name]!r}: expected one {meaning} in the file, found {describe(column[0])} and "
            f"{describe(column[row])}"
        )
    return str(column[0])
