"""Files to a dataset: what is written, what is refused with its row; chunks and order change nothing, failures leave nothing."""

import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import bellmark
from bellmark import clock
from bellmark.api import read_dataset
from bellmark.component import make
from bellmark.datasets import stored
from bellmark.datasets.imported import Imported
from bellmark.errors import BellmarkError, DataError, UsageError
from bellmark.tape import compile_tape

pytestmark = pytest.mark.none

T0 = 1_709_562_600  # 2024-03-04T14:30:00Z
HEADER = "ts,open,high,low,close,volume"


def line(step, close=None, start=T0, **more):
    close = 100 + step % 7 if close is None else close
    stamp = clock.text((start + 60 * step) * clock.SECOND)
    return ",".join([stamp, f"{close}", f"{close + 1}", f"{close - 1}", f"{close}", f"{step % 5 + 1}", *map(str, more.values())])


def write(folder, lines, name="bars.csv", header=HEADER):
    path = folder / name
    path.write_text("\n".join([header, *lines]) + "\n")
    return path


def imported(path, folder, name="x", **more):
    given = {"format": "csv", "stamp": "close", "zone": "UTC", "symbol": "X", "name": name, "data_dir": folder / "data", **more}
    return bellmark.import_dataset(path, **given)


def tape_of(report, **more):
    return compile_tape(make(Imported, {"path": str(report.path), **more}, "data").read(), cached=False)


def test_a_file_becomes_a_folder_with_a_manifest_that_reads_back(tmp_path):
    report = imported(write(tmp_path, [line(step) for step in range(1, 31)]), tmp_path)
    assert sorted(path.name for path in report.path.iterdir()) == ["X.parquet", "manifest.json"]
    manifest = json.loads((report.path / "manifest.json").read_text())
    assert manifest["schema_version"] == 1 and manifest["rows_read"] == manifest["bars"] == 30 and manifest["format"] == "csv"
    assert [source["name"] for source in manifest["sources"]] == ["bars.csv"] and len(manifest["sources"][0]["sha256"]) == 64
    assert manifest["bar_seconds"] == 60.0 and manifest["policies"]["unsorted"] == "error"
    assert (manifest["symbols"]["X"]["first"], manifest["symbols"]["X"]["last"]) == ("2024-03-04T14:31:00Z", "2024-03-04T15:00:00Z")
    (bars, instrument), = make(Imported, {"path": str(report.path)}, "data").read()
    assert len(bars) == 30 and bars.close[0] == 101 and instrument.symbol == "X" and report.warnings == []
    assert bellmark.check_dataset(report.path) == []


def test_the_same_files_and_options_give_the_same_bytes_whatever_the_chunk(tmp_path):
    path = write(tmp_path, [line(step) for step in range(1, 400)])
    folders = [imported(path, tmp_path / str(chunk), chunk_bytes=chunk).path for chunk in (1024, 2000, 1 << 20)]
    for name in ("manifest.json", "X.parquet"):
        assert len({(folder / name).read_bytes() for folder in folders}) == 1, name


def test_the_component_gives_the_tape_of_the_csv_component(tmp_path):
    path = write(tmp_path, [line(step) for step in range(1, 30)])
    from bellmark.datasets.csv import CsvFile

    read = make(CsvFile, {"path": str(path), "stamp": "close", "zone": "UTC", "symbol": "X"}, "data").read()
    assert compile_tape(read, cached=False).content_hash == tape_of(imported(path, tmp_path)).content_hash


def test_opens_become_closes_and_longer_bars_are_made_at_import_or_at_reading(tmp_path):
    path = write(tmp_path, [line(step) for step in range(0, 60)])
    whole = imported(path, tmp_path, stamp="open", bar="1m")
    assert whole.manifest["symbols"]["X"]["first"] == "2024-03-04T14:31:00Z"
    longer = imported(path, tmp_path, name="y", stamp="open", bar="1m", resample="5m")
    assert longer.manifest["bars"] == 12 and longer.manifest["bar_seconds"] == 300.0
    assert tape_of(longer).content_hash == tape_of(whole, every="5m").content_hash
    with pytest.raises(UsageError, match="--bar"):
        imported(path, tmp_path, name="z", stamp="open")


def test_case_01_duplicate_stamps(tmp_path):
    lines = [line(0), line(1), line(1), line(2), line(3, 103), line(3, 105)]
    with pytest.raises(DataError, match=r"bars.csv: X: data rows 5, 6 .*2024-03-04T14:33:00Z disagree"):
        imported(write(tmp_path, lines), tmp_path)
    assert list((tmp_path / "data").iterdir()) == []
    with pytest.raises(DataError, match=r"data rows 5, 6 .*2024-03-04T14:33:00Z disagree"):  # as it stands in the file
        imported(write(tmp_path, lines), tmp_path, stamp="open", bar="1m")
    for policy, close in (("keep_first", 103), ("keep_last", 105)):
        report = imported(write(tmp_path, lines), tmp_path, name=policy, on={"duplicate_conflicting": policy})
        (bars, _), = make(Imported, {"path": str(report.path)}, "data").read()
        assert len(bars) == 4 and bars.close[-1] == close and bars.duplicates == 1
    assert report.manifest["symbols"]["X"]["duplicates"] == 1


def test_a_duplicate_over_the_edge_of_a_chunk_is_found(tmp_path):
    lines = [line(step) for step in range(100)]
    for place in range(1, 100):
        twice = lines[:place] + [lines[place - 1]] + lines[place:]
        if place % 7 == 0:
            report = imported(write(tmp_path, twice), tmp_path, chunk_bytes=1024, replace=True)
            assert report.manifest["bars"] == 100 and report.manifest["symbols"]["X"]["duplicates"] == 1
            other = lines[:place] + [line(place - 1, 555)] + lines[place:]
            with pytest.raises(DataError, match=f"data rows {place}, {place + 1} "):
                imported(write(tmp_path, other), tmp_path, chunk_bytes=1024, replace=True)


def test_case_07_gap_and_case_13_zero_volume(tmp_path):
    report = imported(write(tmp_path, [line(0, 100), line(1, 101), line(5, 140), line(6, 141)]), tmp_path)
    gaps = report.manifest["symbols"]["X"]["gaps"]
    assert (gaps["count"], gaps["missing_bars"], round(gaps["largest_move"], 4)) == (1, 3, 0.3861)
    filled = imported(write(tmp_path, [line(0, 100), line(1, 101), line(5, 140)]), tmp_path, name="y", on={"missing_bars": "fill"})
    (bars, _), = make(Imported, {"path": str(filled.path)}, "data").read()
    assert bars.close.tolist() == [100, 101, 101, 101, 101, 140] and bars.volume[2:5].tolist() == [0, 0, 0]
    assert filled.manifest["findings"][0]["action"] == "filled with flat bars of zero volume"
    nights = [line(step) for step in (*range(1, 391), *range(1441, 1831)) if step != 5]
    told = {"on": {"missing_bars": "fill"}, "session": "us_equity"}
    assert imported(write(tmp_path, nights), tmp_path, name="z", **told).manifest["bars"] == 780


def test_case_09_zero_price(tmp_path):
    lines = [line(0, 65), line(1, 64), line(2, 0).replace(",1,-1,", ",0,0,"), line(3, 63)]
    with pytest.raises(DataError, match="bars.csv: X: data row 3 .*open is 0; prices must be above 0"):
        imported(write(tmp_path, lines), tmp_path)
    report = imported(write(tmp_path, lines), tmp_path, on={"nonpositive_price": "drop"})
    (bars, _), = make(Imported, {"path": str(report.path)}, "data").read()
    assert bars.close.tolist() == [65, 64, 63] and report.manifest["findings"][0]["count"] == 1


def test_case_11_split_makes_the_dataset_suspect_in_every_use(tmp_path):
    day = 24 * 60
    lines = [line(step * day, close) for step, close in ((0, 500), (1, 500), (4, 129), (5, 134))]
    report = imported(write(tmp_path, lines), tmp_path)
    assert report.manifest["suspect"] == ["X: possible split 1:4 at 2024-03-08"] and "suspect" in report.warnings[0]
    assert any("possible split 1:4" in note for note in tape_of(report).notes)
    allowed = imported(write(tmp_path, lines), tmp_path, name="y", on={"possible_split": "allow"})
    assert allowed.manifest["suspect"] == [] and tape_of(allowed).notes == ()


def test_case_61_a_truncated_last_line_is_refused_or_dropped_with_a_note(tmp_path):
    path = write(tmp_path, [line(step) for step in range(50)])
    path.write_text(path.read_text().rstrip("\n") + "\n" + line(50)[:18])
    with pytest.raises(DataError, match="51"):
        imported(path, tmp_path)
    report = imported(path, tmp_path, on={"truncated": "drop"})
    assert report.manifest["bars"] == 50 and len(report.manifest["notes"]) == 1


def test_files_join_in_time_order_and_overlaps_are_counted_or_refused(tmp_path):
    lines = [line(step) for step in range(60)]
    later, earlier = write(tmp_path, lines[25:], "b.csv"), write(tmp_path, lines[:30], "a.csv")
    whole = imported(write(tmp_path, lines, "whole.csv"), tmp_path, name="w")
    both = imported([later, earlier], tmp_path, chunk_bytes=1024)
    assert both.manifest["bars"] == 60 and both.manifest["symbols"]["X"]["duplicates"] == 5
    assert tape_of(both).content_hash == tape_of(whole).content_hash
    write(tmp_path, [*lines[:29], line(29, 500)], "a.csv")
    with pytest.raises(DataError, match=r"b.csv: X: data row 5; a.csv: X: data row 30 .*disagree"):
        imported([later, earlier], tmp_path, name="z")
    assert imported(str(tmp_path / "[b]*.csv"), tmp_path, name="g").manifest["bars"] == 35


def test_unsorted_files_are_refused_or_sorted_in_bounded_memory(tmp_path, monkeypatch):
    from bellmark.datasets import staging

    monkeypatch.setattr(staging, "MERGE_ROWS", 64)
    lines = [line(step) for step in range(500)]
    mixed = [lines[place] for place in np.random.default_rng(3).permutation(500)]
    with pytest.raises(DataError, match="the rows are not in time order.*--on unsorted=sort"):
        imported(write(tmp_path, mixed), tmp_path)
    whole = imported(write(tmp_path, lines, "whole.csv"), tmp_path, name="w")
    done = imported(write(tmp_path, mixed), tmp_path, chunk_bytes=1024, on={"unsorted": "sort"})
    assert tape_of(done).content_hash == tape_of(whole).content_hash and done.manifest["findings"][0]["check"] == "unsorted"


def test_several_symbols_have_their_own_files_with_safe_names(tmp_path):
    lines = [f"{line(step)},{symbol}" for step in range(20) for symbol in ("BRK/B", "brk-b", "../../etc", "CON")]
    path = write(tmp_path, lines, header=HEADER + ",symbol")
    report = imported(path, tmp_path, symbol=None, symbol_column="symbol")
    names = [entry["files"][0]["name"] for entry in report.manifest["symbols"].values()]
    assert names == ["BRK-B.parquet", "brk-b-2.parquet", "etc.parquet", "CON_.parquet"]
    read = make(Imported, {"path": str(report.path), "symbols": ["CON", "BRK/B"]}, "data").read()
    assert [bars.symbol for bars, _ in read] == ["CON", "BRK/B"]
    with pytest.raises(UsageError, match="no symbol 'CN'; did you mean 'CON'|no symbol 'CN'"):
        make(Imported, {"path": str(report.path), "symbols": ["CN"]}, "data").read()


def test_a_tick_is_kept_to_and_rounding_is_recorded(tmp_path):
    path = write(tmp_path, [line(0), line(1, 100.126)])
    with pytest.raises(DataError, match=r"data row 2 .*100.126 is no multiple of the tick 0.25"):
        imported(path, tmp_path, tick_size=0.25)
    report = imported(path, tmp_path, tick_size=0.25, on={"off_grid": "round"})
    (bars, instrument), = make(Imported, {"path": str(report.path)}, "data").read()
    assert bars.close[1] == 100.25 and instrument.tick_size == 0.25 and report.manifest["findings"][0]["check"] == "off_grid"


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGINT, marks=pytest.mark.slow)])
def test_a_stopped_import_leaves_nothing_under_the_name_and_the_next_one_cleans_up(tmp_path, number):
    path = write(tmp_path, [line(step) for step in range(5000)])
    code = (
        "import sys, time, bellmark\n"
        "def wait(stage, done, total):\n    print(stage, flush=True); time.sleep(60)\n"
        f"bellmark.import_dataset({str(path)!r}, format='csv', stamp='close', zone='UTC', symbol='X', name='x', "
        f"data_dir={str(tmp_path / 'data')!r}, chunk_bytes=4096, progress=wait)"
    )
    child = subprocess.Popen([sys.executable, "-P", "-c", code], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert child.stdout.readline().strip() == "reading"
    child.send_signal(number)
    child.wait(30)
    left = [entry.name for entry in (tmp_path / "data").iterdir()]
    assert "x" not in left and (number == signal.SIGKILL or left == []) and bellmark.list_datasets(tmp_path / "data") == []
    assert imported(path, tmp_path).manifest["bars"] == 5000
    assert [entry.name for entry in (tmp_path / "data").iterdir()] == ["x"]


def test_a_name_that_is_taken_is_refused_before_reading_and_replaced_on_demand(tmp_path):
    path = write(tmp_path, [line(step) for step in range(5)])
    imported(path, tmp_path)
    with pytest.raises(UsageError, match="a dataset of this name exists"):
        imported(path, tmp_path)
    with pytest.raises(DataError):
        imported(write(tmp_path, [line(0), line(0, 7)], "bad.csv"), tmp_path, replace=True)
    assert bellmark.dataset_manifest("x", data_dir=tmp_path / "data")["bars"] == 5
    assert imported(write(tmp_path, [line(0)], "one.csv"), tmp_path, replace=True).manifest["bars"] == 1
    for name in ("../x", ".x", "a/b", "CON", ""):
        if name:
            with pytest.raises(UsageError, match="--name: expected letters"):
                imported(path, tmp_path, name=name)


def test_changed_datasets_are_refused_in_one_line(tmp_path):
    report = imported(write(tmp_path, [line(step) for step in range(5)]), tmp_path)
    manifest = report.path / "manifest.json"
    text = manifest.read_text()
    manifest.write_text(text.replace('"bars": 5', '"bars": 6'))
    with pytest.raises(DataError, match="it was changed after it was written"):
        make(Imported, {"path": str(report.path)}, "data").read()
    manifest.write_text(text.replace('"schema_version": 1', '"schema_version": 2'))
    with pytest.raises(DataError, match="reads schema_version up to 1, found 2: a newer one wrote it"):
        make(Imported, {"path": str(report.path)}, "data").read()
    manifest.write_text(text)
    file = report.path / "X.parquet"
    whole = file.read_bytes()
    file.write_bytes(whole[:-1])
    with pytest.raises(DataError, match="X.parquet: expected .* bytes, found"):
        make(Imported, {"path": str(report.path)}, "data").read()
    file.write_bytes(whole[:200] + bytes([whole[200] ^ 1]) + whole[201:])
    assert "do not have the hash" in bellmark.check_dataset(report.path)[0]
    file.unlink()
    assert "cannot be read" in bellmark.check_dataset(report.path)[0]


def test_a_manifest_cannot_name_files_elsewhere(tmp_path):
    report = imported(write(tmp_path, [line(step) for step in range(5)]), tmp_path)
    document = dict(report.manifest)
    document["symbols"]["X"]["files"][0]["name"] = "../../secret.parquet"
    stored.write_manifest(report.path, {key: value for key, value in document.items() if key != "manifest_hash"})
    with pytest.raises(DataError, match="expected the name of a Parquet file of the folder"):
        make(Imported, {"path": str(report.path)}, "data").read()


def test_export_gives_back_the_same_tape(tmp_path):
    lines = [line(step) for step in range(40)]
    lines[7] = lines[7].rpartition(",")[0] + ","  # an unknown volume
    report = imported(write(tmp_path, lines), tmp_path)
    out = bellmark.export_dataset(report.path, tmp_path / "out.csv")
    again = imported(out, tmp_path, name="again", stamp_column="ts_event", symbol=None, symbol_column="symbol")
    assert tape_of(again).content_hash == tape_of(report).content_hash
    assert np.isnan(tape_of(again).volume_ST[0, 7])
    bellmark.export_dataset(report.path, tmp_path / "out.parquet")
    with pytest.raises(UsageError, match="--out: expected a file that ends in .csv or .parquet"):
        bellmark.export_dataset(report.path, tmp_path / "out.txt")


def test_what_a_component_makes_becomes_a_dataset(tmp_path):
    read = {"path": str(write(tmp_path, [line(step) for step in range(50)])), "stamp": "close", "zone": "UTC", "symbol": "X"}
    path = bellmark.make_dataset("csv", "made", data_dir=tmp_path, **read)
    assert bellmark.check_dataset(path) == []
    made = compile_tape(make(Imported, {"path": str(path)}, "data").read(), cached=False)
    assert made.content_hash == compile_tape(read_dataset("csv", read), cached=False).content_hash
    assert [row["name"] for row in bellmark.list_datasets(tmp_path)] == ["made"]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"format": "cvs"}, "--format: no format named 'cvs'; did you mean 'csv'"),
        ({"stmap": "close"}, "no setting 'stmap'"),
        ({"stamp": "end"}, "stamp: expected one of open, close, found 'end'"),
        ({"on": {"unsortd": "sort"}}, "no check named 'unsortd'; did you mean 'unsorted'"),
        ({"tick_size": -1.0}, "tick_size: expected a number above 0"),
        ({"zone": "America/NewYork"}, "expected an IANA time zone .*did you mean 'America/New_York'"),
        ({"bar": "5x"}, "--bar: expected a length such as"),
        ({"symbol": ["A", "A"]}, "symbol: expected each name once"),
        ({"instrument": "nothing_like_it"}, "nothing_like_it"),
    ],
)
def test_wrong_settings_are_one_line(tmp_path, more, told):
    with pytest.raises(UsageError, match=told):
        imported(write(tmp_path, [line(step) for step in range(5)]), tmp_path, **more)
    assert not (tmp_path / "data" / "x").exists()


def test_missing_files_are_one_line(tmp_path):
    write(tmp_path, [line(0)])
    for files, told in (([], "at least one file"), ([tmp_path / "bar.csv"], "no such file; did you mean 'bars.csv'"),
                        ([tmp_path], "found a folder"), ([tmp_path / "*.txt"], "no file has such a name"),
                        ([tmp_path / "bars.csv", tmp_path / "./bars.csv"], "given twice")):  # fmt: skip
        with pytest.raises(UsageError, match=told):
            imported(files, tmp_path)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_shuffled_repeated_or_shifted_files_give_the_same_tape_or_an_error(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("property")
    count = data.draw(st.integers(20, 60))
    lines = [line(step, 50 + (step * 7) % 11) for step in range(count)]
    whole = tape_of(imported(write(folder, lines, "whole.csv"), folder, name="whole"))
    order = data.draw(st.one_of(st.just(list(range(count))), st.permutations(range(count))))
    again = data.draw(st.lists(st.integers(0, count - 1), max_size=3))
    cut = data.draw(st.integers(1, count - 1))
    mixed = [lines[place] for place in [*order, *again]]
    on = data.draw(st.sampled_from([{}, {"unsorted": "sort"}]))
    paths = [write(folder, part, f"{name}.csv") for name, part in (("a", mixed[:cut]), ("b", mixed[cut:]))]
    try:
        report = imported(paths, folder, name="mixed", chunk_bytes=data.draw(st.sampled_from([1024, 1 << 20])), on=on)
    except BellmarkError:
        assert on == {} and [*order, *again] != sorted(order)
    else:
        assert tape_of(report).content_hash == whole.content_hash


@pytest.mark.slow
def test_memory_is_bounded_by_the_chunk_and_not_by_the_file(tmp_path):
    """Case 61 in small: eighty times the rows, whose text and columns are beyond 200 MB, add no more than is read and written at once."""
    code = (
        "import resource, sys, bellmark\n"
        "from bellmark.datasets import staging, stored\n"
        "stored.PART_ROWS, staging.blocks.__defaults__ = 100_000, (50_000,)\n"
        "bellmark.import_dataset(sys.argv[1], format='csv', stamp='close', zone='UTC', symbol='X', name='x', data_dir=sys.argv[2], "
        "chunk_bytes=1 << 20)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    peaks = []
    for count in (25_000, 2_000_000):
        path = tmp_path / f"{count}.csv"
        with path.open("w") as file:
            file.write(HEADER + "\n")
            for first in range(0, count, 100_000):
                stamp = np.datetime_as_string(np.datetime64(T0, "s") + np.arange(first, min(first + 100_000, count)), unit="s")
                file.write("".join(f"{text}Z,100,101,99,100.5,7\n" for text in stamp))
        words = [sys.executable, "-P", "-c", code, str(path), str(tmp_path / f"d{count}")]
        peaks.append(int(subprocess.run(words, capture_output=True, text=True, check=True).stdout))
    assert path.stat().st_size > 80e6 and peaks[1] - peaks[0] < 60_000, peaks  # KB


@pytest.mark.parametrize(
    ("form", "zone"),
    [("%s", "UTC"), ("%s000", "America/New_York"), ("%s000000", "UTC"), ("%s000000000", "UTC"), ("iso", "Asia/Tokyo"),
     ("local", "Asia/Tokyo"), ("offset", "UTC")],
)  # fmt: skip
def test_other_units_and_zones_of_the_same_moments_give_the_same_tape(tmp_path, form, zone):
    whole = imported(write(tmp_path, [line(step) for step in range(30)]), tmp_path, name="whole")

    def stamp(second):
        if form.startswith("%s"):
            return form.replace("%s", str(second))
        if form == "iso":
            return clock.text(second * clock.SECOND)
        plain = clock.text((second + 9 * 3600) * clock.SECOND).removesuffix("Z")
        return plain + ("+09:00" if form == "offset" else "")

    lines = [",".join([stamp(T0 + 60 * step), *line(step).split(",")[1:]]) for step in range(30)]
    other = imported(write(tmp_path, lines, "other.csv"), tmp_path, name="other", zone=zone)
    assert tape_of(other).content_hash == tape_of(whole).content_hash


def test_funding_goes_beside_the_bars_and_is_put_in_after_longer_bars_are_made(tmp_path):
    lines = [line(step, start=T0 - T0 % 28_800) for step in range(1, 1441)]
    told = [f"{(T0 - T0 % 28_800 + at) * 1000},8,0.000{at // 28_800 + 1}" for at in (28_800, 57_600)]
    rates = write(tmp_path, told, "BTCUSDT-funding.csv", "calc_time,funding_interval_hours,last_funding_rate")
    report = imported(write(tmp_path, lines), tmp_path, funding=[rates])
    assert [source["name"] for source in report.manifest["sources"]] == ["bars.csv", "BTCUSDT-funding.csv"]
    for every in ("", "1h"):
        ((bars, _),) = make(Imported, {"path": str(report.path), "every": every}, "data").read()
        assert bars.funding_rate[~np.isnan(bars.funding_rate)].tolist() == [0.0002, 0.0003]
    assert bellmark.check_dataset(report.path) == []
    with pytest.raises(UsageError, match="--funding: .*expected a file of a known funding layout"):
        imported(tmp_path / "bars.csv", tmp_path, name="y", funding=[tmp_path / "bars.csv"])
    with pytest.raises(UsageError, match="it holds funding, not bars, ticks or quotes; give it by --funding"):
        imported(rates, tmp_path, name="y", format="binance_funding")


def left_over(folder, name, process, old=False, node=None):
    host = stored._owner().rpartition(".")[0] if node is None else node
    path = folder / f".{name}.{host}.{process}.0{'.old' if old else ''}.tmp"
    path.mkdir()
    return path


def test_left_overs_of_a_dead_process_go_and_those_of_a_living_one_stay(tmp_path):
    left_over(tmp_path, "x", 999_999_999)
    mine = left_over(tmp_path, "y", os.getpid())
    other = left_over(tmp_path, "x", 999_999_999, node="elsewhere")  # on a disk that machines share, the number says nothing
    with stored.new_dataset(tmp_path, "z") as folder:
        (folder / "a").write_text("a")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([mine.name, other.name, "z"])


def test_a_dataset_comes_back_that_a_killed_import_was_about_to_replace(tmp_path):
    report = imported(write(tmp_path, [line(step) for step in range(5)]), tmp_path)
    os.rename(report.path, left_over(tmp_path / "data", "x", 999_999_999, old=True))
    os.rename(imported(write(tmp_path, [line(0)]), tmp_path, name="new").path, left_over(tmp_path / "data", "x", 999_999_999))
    imported(write(tmp_path, [line(0)]), tmp_path, name="y")
    assert bellmark.dataset_manifest("x", data_dir=tmp_path / "data")["bars"] == 5 and bellmark.check_dataset(report.path) == []
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["x", "y"]


def test_a_dataset_stays_where_the_one_that_replaces_it_cannot_take_its_name(tmp_path, monkeypatch):
    path = write(tmp_path, [line(step) for step in range(5)])
    imported(path, tmp_path)
    rename, done = os.rename, []

    def failing(source, target):
        done.append(source)
        if len(done) == 2:
            raise OSError(28, "No space left on device")
        rename(source, target)

    monkeypatch.setattr(stored.os, "rename", failing)
    with pytest.raises(BellmarkError, match="x: it cannot be written: no space left on device"):
        imported(write(tmp_path, [line(0)], "one.csv"), tmp_path, replace=True)
    assert bellmark.dataset_manifest("x", data_dir=tmp_path / "data")["bars"] == 5
    assert [entry.name for entry in (tmp_path / "data").iterdir()] == ["x"]


def test_parts_of_one_symbol_are_never_the_file_of_another(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "PART_ROWS", 10)
    symbols = ("ES", "ES.1", "ES+1", "ES-1")
    lines = [f"{line(step, 50 + step if symbol == 'ES' else 90)},{symbol}" for step in range(25) for symbol in symbols]
    report = imported(write(tmp_path, lines, header=HEADER + ",symbol"), tmp_path, symbol=None, symbol_column="symbol")
    names = [file["name"] for entry in report.manifest["symbols"].values() for file in entry["files"]]
    assert len(names) == len(set(names)) == 12 and bellmark.check_dataset(report.path) == []
    read = {bars.symbol: bars for bars, _ in make(Imported, {"path": str(report.path)}, "data").read()}
    assert read["ES"].close.tolist() == [50 + step for step in range(25)] and set(read["ES.1"].close) == {90}


def test_files_with_other_optional_columns_join_and_what_is_not_there_is_not_known(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "PART_ROWS", 16)
    paths = [write(tmp_path, [line(step) for step in range(20)], "a.csv"),
             write(tmp_path, [f"{line(step)},{int(step == 25)},{step}" for step in range(20, 40)], "b.csv", HEADER + ",halted,roll_price"),
             write(tmp_path, [line(step) for step in range(40, 50)], "c.csv")]  # fmt: skip
    hashes = set()
    for chunk in (1024, 1 << 20):
        report = imported(paths, tmp_path, name=f"x{chunk}", chunk_bytes=chunk)
        hashes.add(report.manifest["content_hash"])
        ((bars, _),) = make(Imported, {"path": str(report.path)}, "data").read()
        assert np.flatnonzero(bars.halted).tolist() == [25] and np.flatnonzero(~np.isnan(bars.roll_price)).tolist() == list(range(20, 40))
        assert bellmark.check_dataset(report.path) == []
    assert len(hashes) == 1
    for halted in (26, 27):  # halts are part of what is hashed
        part = write(tmp_path, [f"{line(step)},{int(step == halted)}" for step in range(20, 40)], "b.csv", HEADER + ",halted")
        hashes.add(imported([paths[0], part], tmp_path, name=f"y{halted}").manifest["content_hash"])
    assert len(hashes) == 3


def test_what_was_sorted_is_counted_the_same_whatever_the_chunk(tmp_path):
    order = np.random.default_rng(5).permutation(300)
    lines = [line(0), *(line(1 + place) for place in order), line(0), line(0)]  # the first row again at the end, twice
    path = write(tmp_path, lines)
    manifests = [imported(path, tmp_path / str(chunk), chunk_bytes=chunk, on={"unsorted": "sort"}) for chunk in (1024, 3000, 1 << 20)]
    assert len({(report.path / "manifest.json").read_bytes() for report in manifests}) == 1
    top = np.maximum.accumulate(order)
    (one,) = [one for one in manifests[0].manifest["findings"] if one["check"] == "unsorted"]
    assert one["count"] == int(np.count_nonzero(order < top)) + 2 and manifests[0].manifest["symbols"]["X"]["duplicates"] == 2
    for chunk in (1024, 1 << 20):
        for wrong in ([line(step) for step in (*range(60), 0, 60)], [line(step) for step in (*range(60), 58, 60)]):
            with pytest.raises(DataError, match="data row 61 .*(begin again|not in time order)"):
                imported(write(tmp_path, wrong, "back.csv"), tmp_path, chunk_bytes=chunk)


def funding_file(folder, name, rates):
    told = [f"{(T0 - T0 % 28_800 + at) * 1000},8,{rate}" for at, rate in rates]
    return write(folder, told, name, "calc_time,funding_interval_hours,last_funding_rate")


def test_funding_of_files_that_overlap_is_kept_once_or_refused_at_import(tmp_path):
    path = write(tmp_path, [line(step, start=T0 - T0 % 28_800) for step in range(1, 1441)])
    first = funding_file(tmp_path, "a.csv", [(28_800, 0.0001), (57_600, 0.0002)])
    report = imported(path, tmp_path, funding=[first, funding_file(tmp_path, "b.csv", [(57_600, 0.0002), (86_400, 0.0003)])])
    ((bars, _),) = make(Imported, {"path": str(report.path)}, "data").read()
    assert bars.funding_rate[~np.isnan(bars.funding_rate)].tolist() == [0.0001, 0.0002, 0.0003]
    (one,) = report.manifest["findings"]
    assert (one["symbol"], one["check"], one["count"], one["first"]) == ("X funding", "duplicate_identical", 1, ["b.csv: data row 1"])
    with pytest.raises(DataError, match=r"--funding: two rates for X at .*: a.csv: data row 2 has 0.0002, c.csv: data row 1 has 0.0004"):
        imported(path, tmp_path, name="y", funding=[first, funding_file(tmp_path, "c.csv", [(57_600, 0.0004)])])
    with pytest.raises(DataError, match="--funding: none of the 1 settlements of X lies within its bars"):
        imported(path, tmp_path, name="y", funding=[funding_file(tmp_path, "far.csv", [(-999 * 28_800, 0.0001)])])
    with pytest.raises(DataError, match="d.csv: data row 1: expected a funding rate above -1 and below 1, such as 0.0001, found 1.5"):
        imported(path, tmp_path, name="y", funding=[funding_file(tmp_path, "d.csv", [(57_600, 1.5)])])


def test_a_suspect_dataset_stays_suspect_when_it_is_made_again(tmp_path):
    lines = [line(step * 1440, close) for step, close in ((0, 500), (1, 500), (4, 129), (5, 134))]
    report = imported(write(tmp_path, lines), tmp_path)
    path = bellmark.make_dataset("imported", "again", data_dir=tmp_path / "data", path=str(report.path))
    assert bellmark.dataset_manifest(path)["suspect"] == report.manifest["suspect"] != []
    assert compile_tape(make(Imported, {"path": str(path)}, "data").read(), cached=False).notes == tape_of(report).notes != ()
    short = bellmark.make_dataset("imported", "short", data_dir=tmp_path / "data", path=str(report.path), every="1d")
    again = make(Imported, {"path": str(short)}, "data").read()[0][0].notes
    assert again == make(Imported, {"path": str(report.path), "every": "1d"}, "data").read()[0][0].notes and len(again) == 2


def test_every_column_of_bars_comes_back_from_a_dataset(tmp_path):
    from bellmark.bars import OPTIONAL, SIGNALS, Bars
    from bellmark.datasets import library
    from bellmark.instrument import Instrument

    count = 6
    shift = {"open": 0.0, "high": 2.0, "low": -2.0, "close": 1.0}
    price = {name: 100.0 + np.arange(count) + more for name, more in shift.items()}
    extras = {name: 50.0 + np.arange(count) + 9 * ("ask" in name) + 2 * ("high" in name) - 2 * ("low" in name) for name in OPTIONAL}
    extras |= {name: 70.0 + np.arange(count) for name in SIGNALS}
    extras |= {"halted": np.arange(count) == 2, "funding_rate": np.where(np.arange(count) == 3, 0.0001, np.nan)}
    extras |= {name: np.where(np.arange(count) == 4, 99.0, np.nan) for name in ("funding_mark", "roll_price")}
    bars = Bars("X", (T0 + 60 * np.arange(count)) * clock.SECOND, **price, volume=np.ones(count), **extras)
    assert set(bars.extras) == {*OPTIONAL, *SIGNALS}
    path = library.write([(bars, Instrument("X"))], tmp_path, "x", {"format": "made"})
    ((again, _),) = make(Imported, {"path": str(path)}, "data").read()
    assert set(again.extras) == set(bars.extras) and bellmark.check_dataset(path) == []
    for name, column in bars.extras.items():
        assert np.array_equal(getattr(again, name), column, equal_nan=name != "halted"), name


@pytest.mark.parametrize(("name", "value", "told"), [("ask", 1.0, "ask 1 is below bid"), ("signal_low", -1.0, "signal_low is -1")])
def test_check_looks_at_quotes_and_signals_too(tmp_path, monkeypatch, name, value, told):
    from bellmark import bars as bars_module
    from bellmark.bars import SIGNALS, Bars
    from bellmark.datasets import library
    from bellmark.instrument import Instrument

    price = {name: np.full(3, 100.0) for name in ("open", "high", "low", "close")}
    extras = {"bid": np.full(3, 99.0), "ask": np.full(3, 101.0), **{name: np.full(3, 100.0) for name in SIGNALS}}
    extras[name] = np.array([extras[name][0], value, extras[name][2]])
    bars = Bars("X", (T0 + 60 * np.arange(3)) * clock.SECOND, **price, volume=np.ones(3), **extras)
    with monkeypatch.context() as patched:
        patched.setattr(library.bars_module, "check", lambda *given: None)
        path = library.write([(bars, Instrument("X"))], tmp_path, "x", {"format": "made"})
    assert bars_module.check is library.bars_module.check and told in bellmark.check_dataset(path)[0]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda document: document.pop("symbols"), "expected symbols"),
        (lambda document: document.update(symbols={}), "expected symbols"),
        (lambda document: document["symbols"]["X"].pop("files"), "symbol X: expected files"),
        (lambda document: document["symbols"]["X"].update(instrument={}), "symbol X: expected an instrument"),
        (lambda document: document["symbols"]["X"]["files"][0].pop("bytes"), "expected bytes"),
        (lambda document: document.update(symbols=[1]), "expected symbols"),
        (lambda document: document.update(suspect="no"), "expected suspect"),
    ],
)
def test_forged_manifests_are_one_line_and_do_not_stop_a_list(tmp_path, change, told):
    report = imported(write(tmp_path, [line(step) for step in range(5)]), tmp_path)
    imported(tmp_path / "bars.csv", tmp_path, name="right")
    document = json.loads(json.dumps(report.manifest))
    change(document)
    stored.write_manifest(report.path, {key: value for key, value in document.items() if key != "manifest_hash"})
    assert told in bellmark.check_dataset(report.path)[0]
    with pytest.raises(DataError, match=told):
        make(Imported, {"path": str(report.path)}, "data").read()
    rows = {row["name"]: row["error"] for row in bellmark.list_datasets(tmp_path / "data")}
    assert rows["right"] is None and (rows["x"] is None) == ("instrument" in told)


def test_bars_that_were_changed_in_place_are_not_read(tmp_path):
    report = imported(write(tmp_path, [line(step) for step in range(50)]), tmp_path)
    file = report.path / "X.parquet"
    whole = bytearray(file.read_bytes())
    whole[60] ^= 1
    file.write_bytes(whole)
    with pytest.raises(DataError, match="X.parquet: its bytes do not have the hash written with them"):
        make(Imported, {"path": str(report.path)}, "data").read()


def test_a_dataset_that_another_import_made_meanwhile_is_not_overwritten(tmp_path):
    path, other = write(tmp_path, [line(step) for step in range(5)]), write(tmp_path, [line(0)], "one.csv")
    inner = []

    def between(stage, done, total):
        if stage == "writing" and not inner:
            inner.append(imported(other, tmp_path))

    with pytest.raises(UsageError, match="another import made a dataset of this name meanwhile"):
        imported(path, tmp_path, progress=between)
    assert bellmark.dataset_manifest("x", data_dir=tmp_path / "data")["bars"] == 1
    assert [entry.name for entry in (tmp_path / "data").iterdir()] == ["x"]


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path):
    path = write(tmp_path, [line(step) for step in range(50)])

    def between(stage, done, total):
        if stage == "writing":
            path.write_text(path.read_text() + line(50) + "\n")

    with pytest.raises(DataError, match="bars.csv: it was changed while it was read; import it again"):
        imported(path, tmp_path, progress=between)
    assert list((tmp_path / "data").iterdir()) == []


@pytest.mark.parametrize("stamp", ["14:30", "05:00", "00:00"])
def test_a_bar_of_a_day_closes_with_its_session_whatever_moment_its_stamp_is(tmp_path, stamp):
    lines = [",".join([f"2024-03-{day:02d}T{stamp}:00Z", "100,101,99,100,5"]) for day in (4, 5, 6, 7, 8)]
    report = imported(write(tmp_path, lines), tmp_path, stamp="open", bar="1d", instrument="us_equity")
    entry = report.manifest["symbols"]["X"]
    assert (entry["first"], entry["last"]) == ("2024-03-04T21:00:00Z", "2024-03-08T21:00:00Z") and entry["outside_session"] == 0
    assert entry["gaps"]["count"] == 0


def test_bars_outside_the_hours_are_counted_and_most_of_them_refused(tmp_path):
    hours = {"instrument": "us_equity", "on": {}}
    inside = [line(step, start=T0) for step in range(1, 101)]
    report = imported(write(tmp_path, [*(line(step) for step in range(-20, 1)), *inside]), tmp_path, **hours)
    assert report.manifest["symbols"]["X"]["outside_session"] == 21 and report.manifest["findings"][0]["check"] == "outside_session"
    assert any("outside_session: 21 found" in text for text in report.warnings)
    assert tape_of(report).outside_S.tolist() == [21]
    path = write(tmp_path, [line(step) for step in range(-200, 101)])
    with pytest.raises(DataError, match="X: 201 of 301 bars close outside .*is the zone right .*--on outside_session=report"):
        imported(path, tmp_path, name="y", **hours)
    dropped = imported(path, tmp_path, name="y", **(hours | {"on": {"outside_session": "drop"}}))
    assert dropped.manifest["bars"] == 100 and dropped.manifest["findings"][0]["action"] == "left out"
    with pytest.raises(DataError, match="data rows 1, 2, 3 and .* lies outside the hours"):
        imported(path, tmp_path, name="z", **(hours | {"on": {"outside_session": "error"}}))
    saturday = [f"2024-03-{day:02d},100,101,99,100,5" for day in (4, 5, 6, 7, 9)]
    with pytest.raises(DataError, match="data row 5 .*2024-03-09T21:00:00Z lies on a day on which .* is closed: are the dates shifted"):
        imported(write(tmp_path, saturday, "days.csv"), tmp_path, name="z", zone="America/New_York", **hours)


@pytest.mark.parametrize("price", ["1e-7", "1e305"])
def test_prices_that_the_grid_cannot_hold_are_refused(tmp_path, price):
    lines = [line(0), line(1).split(",")[0] + f",{price},{price},{price},{price},1", line(2)]
    for on in ({"off_grid": "round"}, {}):
        with pytest.raises(DataError, match=rf"data row 2 .*open is {re.escape(f'{float(price):g}')}, which no step of"):
            imported(write(tmp_path, lines), tmp_path, tick_size=0.25, on=on)


def test_export_writes_funding_and_actions_beside_the_bars_as_an_import_reads_them(tmp_path):
    lines = [line(step, start=T0 - T0 % 28_800) for step in range(1, 1441)]
    rates = funding_file(tmp_path, "rates.csv", [(28_800, 0.0001), (57_600, 0.0002)])
    report = imported(write(tmp_path, lines), tmp_path, funding=[rates])
    out = bellmark.export_dataset(report.path, tmp_path / "out.csv")
    told = {"stamp_column": "ts_event", "symbol": None, "symbol_column": "symbol"}
    again = imported(out, tmp_path, name="again", funding=[tmp_path / "out.funding.csv"], **told)
    assert tape_of(again).content_hash == tape_of(report).content_hash
    actions = write(tmp_path, ["2024-03-05,2,", "2024-03-06,,0.5"], "actions.csv", "date,split,dividend")
    daily = [line(step * 1440, close) for step, close in ((0, 100), (1, 50), (2, 51))]
    split = imported(write(tmp_path, daily, "daily.csv"), tmp_path, name="split", actions=[actions], adjustment="raw", session="us_equity",
                     on={"outside_session": "report"})  # fmt: skip
    out = bellmark.export_dataset(split.path, tmp_path / "days.parquet")
    written = (tmp_path / "days.actions.csv").read_text().splitlines()
    assert written == ["date,symbol,split,dividend", "2024-03-05,X,2.0,0.0", "2024-03-06,X,1.0,0.5"] and out.exists()
    assert not (tmp_path / "days.funding.csv").exists()


def test_whether_a_file_holds_two_series_does_not_depend_on_chunks(tmp_path):
    some = [text for step in range(200) for text in ([line(step), line(step, 90)] if 40 <= step < 80 else [line(step)])]
    most = [text for step in range(200) for text in ([line(step), line(step, 90)] if step < 190 else [line(step)])]
    hashes = set()
    for chunk in (1024, 4096, 1 << 20):
        given = {"chunk_bytes": chunk, "name": f"x{chunk}", "on": {"duplicate_conflicting": "keep_first"}}
        report = imported(write(tmp_path, some), tmp_path, **given)
        hashes.add((report.manifest["content_hash"], json.dumps(report.manifest["findings"])))
        with pytest.raises(DataError, match="190 rows share 200 stamps with rows of other values: it holds two series of one symbol"):
            imported(write(tmp_path, most), tmp_path, **(given | {"name": "y"}))
    assert len(hashes) == 1
