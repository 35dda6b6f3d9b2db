"""Ticks, quotes and quote bars on their way to bars: chunks and files change nothing, quotes meet their bars, sides may be missing."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bellmark
from bellmark import clock
from bellmark.bars import ASKS, BIDS
from bellmark.component import make
from bellmark.datasets import importing, request, stored
from bellmark.datasets.formats import RowFacts, Rows
from bellmark.datasets.imported import Imported
from bellmark.errors import DataError, RunError, UsageError

pytestmark = pytest.mark.none

T0 = 1_709_562_600
ZONED = {"zone": "UTC", "symbol": "X", "format": "csv"}


def moment(seconds):
    return clock.text(round((T0 + seconds) * 1000) * 1_000_000, "ms")


def write(folder, lines, name="ticks.csv", header="ts,price,size"):
    path = folder / name
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def bars_of(report):
    ((bars, _),) = make(Imported, {"path": str(report.path)}, "data").read()
    return bars


def imported(path, folder, name="x", **more):
    return bellmark.import_dataset(path, **{**ZONED, "name": name, "data_dir": folder / "data", **more})


def walk(count, seed=1):
    random = np.random.default_rng(seed)
    seconds = np.sort(random.uniform(0, 1800, count)).round(3)
    price = 100 + random.integers(-4, 5, count) / 4
    return [f"{moment(at)},{value},{size}" for at, value, size in zip(seconds, price, random.integers(1, 9, count), strict=True)]


def test_ticks_become_bars_whatever_the_chunk_and_however_cut_into_files(tmp_path):
    lines = walk(800)
    keep = {"bar": "1m", "on": {"unfinished_bar": "keep"}}
    whole = imported(write(tmp_path, lines), tmp_path, **keep)
    bars = bars_of(whole)
    assert whole.manifest["rows_read"] == 800 and whole.manifest["bar_seconds"] == 60 and bars.volume.sum() == sum(
        int(text.rpartition(",")[2]) for text in lines)  # fmt: skip
    small = imported(write(tmp_path, lines), tmp_path, name="small", chunk_bytes=1024, **keep)
    parts = [write(tmp_path, lines[500:], "b.csv"), write(tmp_path, lines[:211], "a.csv"), write(tmp_path, lines[211:500], "c.csv")]
    joined = imported(parts, tmp_path, name="joined", chunk_bytes=1024, **keep)
    assert {report.manifest["content_hash"] for report in (whole, small, joined)} == {whole.manifest["content_hash"]}


def test_ticks_need_a_length_and_time_order_and_files_that_do_not_overlap(tmp_path):
    lines = walk(50)
    with pytest.raises(UsageError, match="it holds ticks; say the length of the bars to make of them, as in --bar 1m"):
        imported(write(tmp_path, lines), tmp_path)
    with pytest.raises(DataError, match="data row 11 .*the ticks are not in time order"):
        imported(write(tmp_path, [*lines[:10], lines[3], *lines[10:]]), tmp_path, bar="1m")
    with pytest.raises(DataError, match=r"b.csv: X: data row 1 .*or two files overlap"):
        imported([write(tmp_path, lines[:30], "a.csv"), write(tmp_path, lines[20:], "b.csv")], tmp_path, bar="1m")
    assert not (tmp_path / "data" / "x").exists()


def test_a_wrong_tick_is_refused_with_its_row_or_dropped(tmp_path):
    lines = walk(20)
    lines[6] = lines[6].split(",")[0] + ",0,1"
    with pytest.raises(DataError, match="data row 7 .*is 0; prices must be above 0"):
        imported(write(tmp_path, lines), tmp_path, bar="1m")
    report = imported(write(tmp_path, lines), tmp_path, bar="1m", on={"nonpositive_price": "drop"})
    assert report.manifest["findings"][0]["count"] == 1 and bars_of(report).low.min() > 0


def test_quotes_become_bars_of_the_middle_with_both_sides_beside(tmp_path):
    lines = [f"{moment(at)},{bid},{ask}" for at, bid, ask in ((0, 10, 11), (20, 12, 13), (59, 9, 10), (61, 10, 12), (120, 8, 9))]
    report = imported(write(tmp_path, lines, header="ts,bid,ask"), tmp_path, bar="1m")
    bars = bars_of(report)
    assert [float(getattr(bars, name)[0]) for name in ("open", "high", "low", "close")] == [10.5, 12.5, 9.5, 9.5]
    assert [float(getattr(bars, name)[0]) for name in (*BIDS, *ASKS)] == [10, 12, 9, 9, 11, 13, 10, 10]
    assert np.isnan(bars.volume).all() and report.manifest["symbols"]["X"]["unknown_volume_bars"] == 2
    bid = bars_of(imported(write(tmp_path, lines, header="ts,bid,ask"), tmp_path, name="y", bar="1m", price="bid", quotes=False))
    assert bid.close.tolist() == [9, 10]


class Source:
    """Rows of given kinds in the place of a format's."""

    def __init__(self, chunks):
        self.chunks = chunks

    def __call__(self, paths, name, options):
        for kind, columns, facts in self.chunks:
            import polars as pl

            count = len(columns["ts"])
            frame = pl.DataFrame({"row": np.arange(1, count + 1), "symbol": ["X"] * count, **columns})
            yield Rows(kind, frame, f"{kind}.csv", 1, 0, 1, facts)


def from_chunks(tmp_path, monkeypatch, chunks, **more):
    from bellmark.datasets import formats

    monkeypatch.setattr(formats, "open_rows", Source(chunks))
    path = tmp_path / "given.csv"
    path.write_text("x")
    settings, options = request.split({"format": "csv", "name": "x", "data_dir": tmp_path / "data", "replace": True, **more})
    return importing.import_files([path], settings, options)


OPEN = RowFacts("open", 60.0, "UTC")


def trades(count=6):
    ts_T = (T0 + 60 * np.arange(count)) * clock.SECOND
    price = {name: np.full(count, 100.0) for name in ("open", "high", "low", "close")}
    return "bars", {"ts": ts_T, **price, "volume": np.ones(count), "trades": np.arange(count) * 1.0}, OPEN


def quote_bars(minutes, **holes):
    ts_T = (T0 + 60 * np.asarray(minutes)) * clock.SECOND
    columns = {name: np.full(len(ts_T), 99.0 if name.startswith("bid") else 101.0) for name in (*BIDS, *ASKS)}
    for side, places in holes.items():
        for name in columns:
            if name.startswith(side):
                columns[name][places] = np.nan
    return "quote_bars", {"ts": ts_T, **columns}, OPEN


def test_quote_bars_join_their_trade_bars_and_others_are_counted(tmp_path, monkeypatch):
    report = from_chunks(tmp_path, monkeypatch, [trades(), quote_bars([-1, 0, 1, 2, 3, 4, 5, 6])])
    bars = bars_of(report)
    assert len(bars) == 6 and bars.bid.tolist() == [99] * 6 and bars.ask_high.tolist() == [101] * 6
    assert report.manifest["symbols"]["X"]["quotes_without_bar"] == 2 and "trades" in report.manifest["symbols"]["X"]["columns"]
    assert bellmark.check_dataset(report.path) == []


def test_quote_bars_alone_have_prices_between_or_of_a_side(tmp_path, monkeypatch):
    report = from_chunks(tmp_path, monkeypatch, [quote_bars([0, 1, 2], ask=[1])], on={"missing_quote": "fill"}, tick_size=0.5)
    ((bars, instrument),) = make(Imported, {"path": str(report.path)}, "data").read()
    assert bars.close.tolist() == [100, 100, 100] and instrument.data_quantum == 0.25 and "bid_low" in bars.quotes
    ask = bars_of(from_chunks(tmp_path, monkeypatch, [quote_bars([0, 1, 2])], price="ask", quotes=False))
    assert ask.close.tolist() == [101] * 3 and not ask.quotes


def test_a_missing_side_is_refused_dropped_or_filled(tmp_path, monkeypatch):
    chunks = [trades(), quote_bars([0, 1, 2, 4, 5], bid=[2], ask=[0])]
    with pytest.raises(DataError, match=r"bars.csv: X: data row.*is missing.*missing_quote=drop or --on missing_quote=fill"):
        from_chunks(tmp_path, monkeypatch, chunks)
    dropped = bars_of(from_chunks(tmp_path, monkeypatch, chunks, on={"missing_quote": "drop"}))
    assert dropped.ts_event.tolist() == [(T0 + 60 * step) * clock.SECOND for step in (2, 5, 6)]
    report = from_chunks(tmp_path, monkeypatch, chunks, on={"missing_quote": "fill"})
    filled = bars_of(report)
    assert len(filled) == 5 and not np.isnan(filled.bid).any()
    assert {(one["action"], one["count"]) for one in report.manifest["findings"]} == {
        ("filled with the last known", 2), ("left out: before the first quote", 1)}  # fmt: skip
    assert "bid" not in bars_of(from_chunks(tmp_path, monkeypatch, chunks, quotes=False)).quotes


def test_quotes_whose_blank_side_is_unchanged_keep_it_over_chunks(tmp_path, monkeypatch):
    facts = RowFacts("", None, "UTC", blank_side="unchanged")
    ts = [(T0 + second) * clock.SECOND for second in (0, 10, 20, 70, 130)]
    chunks = [("quotes", {"ts": ts[:2], "bid": [10.0, None], "ask": [11.0, 12.0]}, facts),
              ("quotes", {"ts": ts[2:], "bid": [None, 9.0, 8.0], "ask": [None, None, None]}, facts)]  # fmt: skip
    bars = bars_of(from_chunks(tmp_path, monkeypatch, chunks, bar="1m"))
    assert bars.bid.tolist() == [10, 9] and bars.ask.tolist() == [12, 12] and bars.open[0] == 10.5


def test_newest_first_is_turned_round_where_the_layout_is_known_to_be_so(tmp_path, monkeypatch):
    kind, columns, _ = trades()
    newest = {name: column[::-1].copy() for name, column in columns.items()}
    facts = RowFacts("open", 60.0, "UTC", order="descending")
    halves = [(kind, {name: column[part] for name, column in newest.items()}, facts) for part in (slice(0, 3), slice(3, 6))]
    whole = from_chunks(tmp_path, monkeypatch, [trades()]).manifest["content_hash"]
    assert from_chunks(tmp_path, monkeypatch, halves).manifest["content_hash"] == whole
    with pytest.raises(DataError, match="not in time order"):
        from_chunks(tmp_path, monkeypatch, halves[::-1])


def test_the_last_bar_of_a_session_ends_with_it(tmp_path, monkeypatch):
    ts_T = (T0 + 3600 * np.arange(7)) * clock.SECOND  # 09:30 to 15:30 in New York
    columns = {"ts": ts_T, **{name: np.full(7, 100.0) for name in ("open", "high", "low", "close")}, "volume": np.ones(7)}
    report = from_chunks(tmp_path, monkeypatch, [("bars", columns, RowFacts("open", 3600.0, "UTC"))], session="us_equity")
    assert clock.text(bars_of(report).ts_event[-1]) == "2024-03-04T21:00:00Z" and report.manifest["cut_at_session_close"] == 1


def test_dates_close_with_the_session_or_at_the_time_that_is_said(tmp_path, monkeypatch):
    day = np.datetime64("2024-03-04", "ns").astype(np.int64)
    columns = {"ts": np.array([day]), **{name: np.full(1, 100.0) for name in ("open", "high", "low", "close")}, "volume": np.ones(1)}
    chunk = [("bars", columns, RowFacts("session"))]
    with pytest.raises(UsageError, match="the stamps are dates alone: say when a bar closes, as in --close-time 16:00"):
        from_chunks(tmp_path, monkeypatch, chunk)
    report = from_chunks(tmp_path, monkeypatch, chunk, session="us_equity")
    assert report.manifest["symbols"]["X"]["first"] == "2024-03-04T21:00:00Z"
    with pytest.raises(UsageError, match="--close-time: it is a local time; say of which zone"):
        from_chunks(tmp_path, monkeypatch, chunk, close_time="16:00")


def test_adjusted_prices_keep_off_the_tick_and_other_lengths_are_refused(tmp_path, monkeypatch):
    kind, columns, _ = trades()
    noisy = {**columns, **{name: columns[name] + 0.1234567 for name in ("open", "high", "low", "close")}}
    report = from_chunks(tmp_path, monkeypatch, [(kind, noisy, RowFacts("open", 60.0, "UTC", "split_dividend"))], tick_size=0.01)
    ((bars, instrument),) = make(Imported, {"path": str(report.path)}, "data").read()
    assert bars.close[0] == 100.123457 and instrument.data_quantum == 1e-6 and instrument.tick_size == 0.01
    with pytest.raises(DataError, match="bars are 300 s long, those of the files before 60 s"):
        from_chunks(tmp_path, monkeypatch, [trades(), (kind, columns, RowFacts("open", 300.0, "UTC"))])
    with pytest.raises(UsageError, match="--bar: .*holds bars of 60 s, found '5m'"):
        from_chunks(tmp_path, monkeypatch, [trades()], bar="5m")


def test_a_stamp_that_begins_again_in_a_later_chunk_is_a_second_series(tmp_path, monkeypatch):
    with pytest.raises(DataError, match="the stamps begin again at 2024-03-04T14:31:00Z, where the file began: it holds two series"):
        from_chunks(tmp_path, monkeypatch, [trades(), trades()])


def test_many_files_of_one_symbol_give_parts_of_bounded_size(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "PART_ROWS", 100)
    kind, columns, facts = trades(250)
    report = from_chunks(tmp_path, monkeypatch, [(kind, columns, facts)])
    files = report.manifest["symbols"]["X"]["files"]
    assert [(entry["name"], entry["rows"]) for entry in files] == [("X.parquet", 100), ("X+1.parquet", 100), ("X+2.parquet", 50)]
    assert len(bars_of(report)) == 250 and bellmark.check_dataset(report.path) == []


def test_a_last_bar_of_ticks_that_is_not_over_is_left_out_and_counted(tmp_path):
    lines = [f"{moment(at)},{price},1" for at, price in ((0, 10), (59, 11), (60, 12), (119.5, 13), (121, 99))]
    report = imported(write(tmp_path, lines), tmp_path, bar="1m")
    assert bars_of(report).close.tolist() == [11, 13]
    (one,) = report.manifest["findings"]
    assert (one["check"], one["action"], one["count"]) == ("unfinished_bar", "left out", 1)
    assert one["first"] == ["the bar until 2024-03-04T14:33:00Z; the ticks end at 2024-03-04T14:32:01.000Z"]
    kept = imported(write(tmp_path, lines), tmp_path, name="k", bar="1m", on={"unfinished_bar": "keep"})
    assert bars_of(kept).close.tolist() == [11, 13, 99] and kept.manifest["findings"][0]["action"] == "kept"
    # a later tick of another series shows that the time has passed
    several = [f"{text},{symbol}" for symbol, part in (("A", lines), ("B", lines[:3])) for text in part]
    several.sort()
    path = write(tmp_path, several, header="ts,price,size,symbol")
    both = imported(path, tmp_path, name="b", bar="1m", symbol=None, symbol_column="symbol")
    assert {symbol: entry["bars"] for symbol, entry in both.manifest["symbols"].items()} == {"A": 2, "B": 2}
    with pytest.raises(DataError, match="holds no bars; the ticks end before their first bar is over, --on unfinished_bar=keep takes it"):
        imported(write(tmp_path, lines[:2]), tmp_path, name="n", bar="1m")


def moving(minutes, first=100.0):
    """Quote bars that all differ: the bid at the close of minute m is first + m."""
    ts_T = (T0 + 60 * np.asarray(minutes)) * clock.SECOND
    columns = {name: first + np.asarray(minutes) + (1.0 if name in ASKS else 0.0) for name in (*BIDS, *ASKS)}
    return "quote_bars", {"ts": ts_T, **columns}, OPEN


def only(chunk, places):
    kind, columns, facts = chunk
    return kind, {name: column[places] for name, column in columns.items()}, facts


def test_a_blank_quote_is_filled_with_the_last_one_known_though_nothing_traded_then(tmp_path, monkeypatch):
    fill = {"on": {"missing_quote": "fill"}}
    quotes = moving([0, 2, 3, 5])
    quotes[1]["ask"][2] = np.nan  # of minute 3 the bid is known, the ask that of minute 2
    chunks = [only(trades(8), [1, 4, 6, 7]), quotes]
    report = from_chunks(tmp_path, monkeypatch, chunks, **fill)
    bars = bars_of(report)
    assert bars.bid.tolist() == [100, 103, 105, 105] and bars.ask.tolist() == [101, 103, 106, 106]
    assert report.manifest["findings"][0]["count"] == 4 and report.manifest["symbols"]["X"]["quotes_without_bar"] == 4
    parts = [only(chunk, part) for chunk, parts in ((chunks[0], ([0, 1], [2, 3])), (quotes, ([0], [1, 2], [3]))) for part in parts]
    again = from_chunks(tmp_path, monkeypatch, parts, **fill)
    assert again.manifest["content_hash"] == report.manifest["content_hash"] and again.manifest["findings"][0]["count"] == 4


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_filled_quotes_are_the_last_known_of_each_side(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("fill")
    minutes = st.lists(st.integers(0, 20), min_size=1, max_size=12, unique=True).map(sorted)
    traded, quoted = data.draw(minutes), data.draw(minutes)
    quotes = moving(quoted)
    blank = {side: data.draw(st.lists(st.integers(0, len(quoted) - 1), max_size=4)) for side in ("bid", "ask")}
    for side, places in blank.items():
        quotes[1][side][places] = np.nan
    cuts = sorted(data.draw(st.lists(st.integers(1, 11), max_size=2, unique=True)))
    chunks = [only(chunk, part) for chunk, count in ((only(trades(21), traded), len(traded)), (quotes, len(quoted)))
              for part in np.split(np.arange(count), [cut for cut in cuts if cut < count])]  # fmt: skip
    known = {side: [m for place, m in enumerate(quoted) if place not in blank[side]] for side in blank}
    wanted = [(m, *(max((q for q in known[side] if q <= m), default=None) for side in ("bid", "ask"))) for m in traded]
    wanted = [(m, b, a) for m, b, a in wanted if b is not None and a is not None and a + 1 >= b]
    with pytest.MonkeyPatch.context() as patched:
        told = {"on": {"missing_quote": "fill", "crossed_quote": "drop"}}
        if not wanted:
            with pytest.raises(DataError, match="no bar is left"):
                from_chunks(folder, patched, chunks, **told)
            return
        bars = bars_of(from_chunks(folder, patched, chunks, **told))
    assert bars.ts_event.tolist() == [(T0 + 60 * (m + 1)) * clock.SECOND for m, _, _ in wanted]
    assert bars.bid.tolist() == [100.0 + b for _, b, _ in wanted] and bars.ask.tolist() == [101.0 + a for _, _, a in wanted]


SIDE_HEADER = "ts,open,high,low,close,volume"


def side(folder, name, closes):
    lines = [f"{moment(60 * minute)},{close},{close},{close},{close},7" for minute, close in closes.items()]
    return write(folder, lines, name, SIDE_HEADER)


def test_bars_of_the_bid_and_of_the_ask_become_quote_bars(tmp_path):
    bid, ask = side(tmp_path, "bid.csv", {1: 10, 2: 11, 3: 12, 5: 14}), side(tmp_path, "ask.csv", {1: 11, 2: 12, 3: 11.5, 4: 14, 5: 15})
    given = {"stamp": "close", "bid": [bid], "ask": [ask]}
    with pytest.raises(DataError, match=r"bid.csv: X: data row 3 .*ask 11.5 is below bid 12 .*--on crossed_quote=drop"):
        imported([], tmp_path, **given)
    with pytest.raises(DataError, match=r"ask.csv: X: data row 4 .*bid.* is missing"):
        imported([], tmp_path, on={"crossed_quote": "drop"}, **given)
    report = imported([], tmp_path, on={"crossed_quote": "drop", "missing_quote": "fill"}, chunk_bytes=1024, **given)
    bars = bars_of(report)
    assert bars.bid.tolist() == [10, 11, 12, 14] and bars.ask_high.tolist() == [11, 12, 14, 15] and bars.close[0] == 10.5
    assert {(one["check"], one["count"]) for one in report.manifest["findings"]} == {("crossed_quote", 1), ("missing_quote", 1)}
    assert [source["name"] for source in report.manifest["sources"]] == ["bid.csv", "ask.csv"] and bellmark.check_dataset(report.path) == []
    with pytest.raises(UsageError, match="--bid, --ask: the bars of one side need those of the other"):
        imported([], tmp_path, name="y", bid=[bid], stamp="close")
    with pytest.raises(UsageError, match="--ask: .*ticks.csv: expected bars of the ask, found ticks"):
        imported([], tmp_path, name="y", stamp="close", bid=[bid], ask=[write(tmp_path, walk(5))])


def test_quotes_of_one_side_are_refused_left_out_or_filled_with_their_rows(tmp_path):
    lines = [f"{moment(at)},{bid},{ask}" for at, bid, ask in ((0, 10, 11), (20, 12, ""), (40, "", 14), (130, 9, 10))]
    path, keep = write(tmp_path, lines, header="ts,bid,ask"), {"unfinished_bar": "keep"}
    with pytest.raises(DataError, match=r"ticks.csv: X: data rows 2, 3 .*bid or ask is missing at .*--on missing_quote=drop or"):
        imported(path, tmp_path, bar="1m")
    for chunk in (1024, 1 << 20):
        report = imported(path, tmp_path, name=f"d{chunk}", bar="1m", on=keep | {"missing_quote": "drop"}, chunk_bytes=chunk)
        assert bars_of(report).bid_high.tolist() == [10, 9]
        assert report.manifest["findings"][0]["first"][0].startswith("ticks.csv: X: data row 2 at")
        filled = bars_of(imported(path, tmp_path, name=f"f{chunk}", bar="1m", on=keep | {"missing_quote": "fill", "crossed_quote": "drop"}))
        assert filled.bid_high.tolist() == [12, 9] and filled.ask.tolist() == [14, 10]


def test_ticks_that_two_files_share_at_their_border_count_once(tmp_path):
    rows = [(0, 10, 1), (30, 11, 2), (30, 11, 2), (30, 12, 1), (45, 13, 1), (130, 9, 1)]
    lines = [f"{moment(at)},{price},{size}" for at, price, size in rows]
    parts = [write(tmp_path, lines[:4], "a.csv"), write(tmp_path, lines[1:], "b.csv")]
    whole = imported(write(tmp_path, lines), tmp_path, name="whole", bar="1m")
    report = imported(parts, tmp_path, bar="1m", chunk_bytes=1024)
    assert report.manifest["content_hash"] == whole.manifest["content_hash"]
    found = [one for one in report.manifest["findings"] if one["check"] == "duplicate_identical"]
    assert [(one["count"], one["first"][0].partition(" at")[0]) for one in found] == [(3, "b.csv: X: data row 1")]
    other = imported([parts[0], write(tmp_path, lines[3:], "c.csv")], tmp_path, name="y", bar="1m")  # only one of the three is in both
    assert other.manifest["content_hash"] == whole.manifest["content_hash"]


def test_quotes_that_are_not_kept_are_not_looked_at(tmp_path, monkeypatch):
    lines = [f"{moment(60 * step)},10,10,10,10,1,12,11" for step in range(5)]
    path = write(tmp_path, lines, header="ts,open,high,low,close,volume,bid,ask")
    with pytest.raises(DataError, match="ask 11 is below bid 12"):
        imported(path, tmp_path, stamp="close")
    assert not bars_of(imported(path, tmp_path, stamp="close", quotes=False)).quotes
    quotes = moving([0, 1, 2])
    quotes[1]["ask"][1] = 1.0
    assert len(bars_of(from_chunks(tmp_path, monkeypatch, [trades(3), quotes], quotes=False))) == 3


def test_ticks_of_which_most_lie_outside_the_hours_are_refused(tmp_path):
    lines = [f"{moment(at)},10,1" for at in (-7200, -3600, -60, 0, 30, 61)]
    path, given = write(tmp_path, lines), {"bar": "1m", "instrument": "us_equity"}
    with pytest.raises(DataError, match="X: 3 of 6 ticks lie outside America/New_York 09:30-16:00 .*is the zone right"):
        imported(path, tmp_path, **given)
    report = imported(path, tmp_path, on={"outside_session": "drop"}, **given)
    assert report.manifest["bars"] == 1 and report.manifest["symbols"]["X"]["outside_session"] == 3


def test_threads_of_one_process_import_beside_one_another(tmp_path):
    from concurrent.futures import ThreadPoolExecutor

    paths = [write(tmp_path, walk(60, seed), f"{seed}.csv") for seed in range(4)]
    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(lambda path: outcome(path, tmp_path), paths))
    assert sum(done) == 1 and [entry.name for entry in (tmp_path / "data").iterdir()] == ["same"]
    assert bellmark.check_dataset(tmp_path / "data" / "same") == []


def outcome(path, folder):
    try:
        return imported(path, folder, name="same", bar="1m").manifest["bars"] > 0
    except (DataError, UsageError, RunError) as error:
        assert "same: " in str(error)
        return False
