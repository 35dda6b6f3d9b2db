"""Splits and dividends of an import: what prices are adjusted for already is known from the layout or said, and never assumed."""

import json

import pytest

import bellmark
from bellmark.component import make
from bellmark.datasets import stored
from bellmark.datasets.imported import Imported
from bellmark.errors import UsageError

pytestmark = pytest.mark.none

KIBOT = "".join(f"08/{day}/2020,{price},{price + 1},{price - 1},{price},100\n" for day, price in ((27, 25), (28, 25), (31, 25)))
GIVEN = {"format": "kibot", "symbol": "X", "session": "us_equity"}


def imported(folder, text=KIBOT, **more):
    (folder / "x.txt").write_text(text)
    (folder / "actions.csv").write_text("date,kind,ratio\n2020-08-31,split,4\n")
    given = {**GIVEN, "data_dir": folder / "data", "actions": [folder / "actions.csv"], "replace": True, **more}
    return bellmark.import_dataset(folder / "x.txt", **given)


def closes(report, **more):
    ((bars, _),) = make(Imported, {"path": str(report.path), **more}, "data").read()
    return bars.close.tolist()


def test_splits_are_not_taken_out_of_prices_that_may_be_without_them_already(tmp_path):
    with pytest.raises(UsageError, match="x.txt: the layout does not say what .* are adjusted for, .* say --adjustment raw, split or"):
        imported(tmp_path)
    assert not list((tmp_path / "data").glob("*"))
    assert closes(imported(tmp_path, adjustment="split")) == [25, 25, 25]
    assert closes(imported(tmp_path, adjustment="split_dividend")) == [25, 25, 25]
    raw = KIBOT.replace("/2020,25,26,24,25", "/2020,100,101,99,100", 2)
    report = imported(tmp_path, raw, adjustment="raw")
    assert closes(report) == [25, 25, 25] and closes(report, adjust="none") == [100, 100, 25] and report.manifest["suspect"] == []
    assert report.manifest["price_adjustment"] == report.manifest["options"]["adjustment"] == "raw"


def test_a_dataset_of_before_that_does_not_say_is_refused(tmp_path):
    report = imported(tmp_path, adjustment="raw")
    manifest = json.loads((report.path / "manifest.json").read_text())
    manifest = {name: value for name, value in manifest.items() if name != "manifest_hash"} | {"price_adjustment": "unknown"}
    stored.write_manifest(report.path, manifest)
    with pytest.raises(UsageError, match="what the prices are adjusted for already must be said: .* found 'unknown'"):
        closes(report)
    assert closes(report, adjust="none") == [25, 25, 25]


def test_without_actions_nobody_need_say_it(tmp_path):
    assert imported(tmp_path, actions=()).manifest["price_adjustment"] == "unknown"


def test_a_split_of_another_ratio_than_the_prices_show_makes_the_data_suspect(tmp_path):
    raw = KIBOT.replace("/2020,25,26,24,25", "/2020,100,101,99,100", 2)
    assert imported(tmp_path, raw, adjustment="raw").manifest["suspect"] == []
    (text,) = imported(tmp_path, adjustment="raw").manifest["suspect"]
    assert text == "X: split 4 of the actions does not fit prices that moved by 1 at 2020-08-31"


def test_actions_that_change_nothing_are_said_and_jumps_of_adjusted_prices_too(tmp_path):
    report = imported(tmp_path, adjustment="split")
    assert any("splits of the actions change nothing" in text for text in report.warnings) and report.manifest["suspect"] == []
    raw = KIBOT.replace("/2020,25,26,24,25", "/2020,100,101,99,100", 2)
    assert imported(tmp_path, raw, adjustment="split").manifest["suspect"] == ["X: possible split 1:4 at 2020-08-31"]


def test_daily_bars_of_common_columns_are_not_taken_for_those_of_a_vendor(tmp_path):
    (tmp_path / "d.csv").write_text("Date,Open,High,Low,Close,Volume\n2024-03-04,1,1,1,1,1\n2024-03-05,1,1,1,1,1\n")
    with pytest.raises(UsageError, match="--format auto .* found that 3 fit: csv, yfinance, stooq; name it"):
        bellmark.import_dataset(tmp_path / "d.csv", symbol="X", session="us_equity", data_dir=tmp_path / "data")


def test_a_file_named_like_a_home_folder_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "~.csv").write_text("ts,open,high,low,close\n2024-03-04T14:30:00Z,1,1,1,1\n2024-03-04T14:31:00Z,1,1,1,1\n")
    given = {"format": "csv", "stamp": "close", "symbol": "X", "name": "x", "data_dir": tmp_path / "data"}
    assert bellmark.import_dataset("~.csv", **given).manifest["bars"] == 2
    with pytest.raises(UsageError, match="no such file"):
        bellmark.import_dataset("~nobody.csv", **given)
