"""The list of everything that was tried."""

import json

import pytest

from bellmark import trials
from bellmark.errors import RunError, UsageError
from bellmark.trials import Trial


def trial(configuration="a", first=100, last=200, data="d", seeds=(1, 2), kind="backtest"):
    return Trial(kind, data, "test", first, last, configuration, seeds)


def test_trials_come_back_in_order_and_lines_hold_a_schema_and_no_clock(tmp_path):
    trials.append(tmp_path / "runs", trial())
    trials.append(tmp_path / "runs", [trial("b"), trial("c", seeds=())])
    assert trials.read(tmp_path / "runs") == [trial(), trial("b"), trial("c", seeds=())]
    line = json.loads((tmp_path / "runs" / "trials.jsonl").read_text().splitlines()[0])
    assert set(line) == {"schema_version", "kind", "data_hash", "window", "first_ns", "last_ns", "configuration_hash", "seeds"}


def test_no_list_is_no_trial(tmp_path):
    assert trials.read(tmp_path) == []


def test_count_takes_distinct_configurations_and_seeds_of_overlapping_windows(tmp_path):
    made = [
        trial("a"),
        trial("a", kind="report"),
        trial("a", seeds=(2, 3)),
        trial("b", first=200, last=300, seeds=()),
        trial("c", first=201, last=300),
        trial("d", data="other"),
    ]
    trials.append(tmp_path, made)
    found = trials.read(tmp_path)
    assert trials.count(found, "d", 100, 200) == 3 + 1
    assert trials.count(found, "d", 0, 99) == 0


def test_line_cut_short_by_a_crash_is_left_out_and_the_next_one_is_whole(tmp_path):
    trials.append(tmp_path, trial("a"))
    path = tmp_path / "trials.jsonl"
    path.write_text(path.read_text() + '{"schema_version": 1, "ki')
    trials.append(tmp_path, trial("b"))
    assert trials.read(tmp_path) == [trial("a"), trial("b")]


def test_newer_schema_and_foreign_line_are_one_line_errors(tmp_path):
    path = tmp_path / "trials.jsonl"
    path.write_text('{"schema_version": 9}\n')
    with pytest.raises(RunError, match=r"trials.jsonl:1: expected schema_version up to 1, found 9"):
        trials.read(tmp_path)
    path.write_text('{"schema_version": 1, "colour": "red"}\n')
    with pytest.raises(RunError, match="not a trial"):
        trials.read(tmp_path)


def test_unknown_kind_is_refused():
    with pytest.raises(UsageError, match="expected one of train, backtest, report"):
        trial(kind="guess")


def test_a_line_that_is_no_object_is_one_line(tmp_path):
    (tmp_path / trials.FILE_NAME).write_text("[1]\n")
    with pytest.raises(RunError, match=r"trials.jsonl:1: expected schema_version up to 1, found a list"):
        trials.read(tmp_path)
