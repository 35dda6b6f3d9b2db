"""The list of everything that was tried."""

import json
import re

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
    with pytest.raises(UsageError, match="expected one of train, backtest, report, sweep"):
        trial(kind="guess")


def test_a_line_that_is_no_object_is_one_line(tmp_path):
    (tmp_path / trials.FILE_NAME).write_text("[1]\n")
    with pytest.raises(RunError, match=r"trials.jsonl:1: expected schema_version up to 1, found a list"):
        trials.read(tmp_path)


def hash_of(fast, name="sma_cross"):
    return trials.configuration("p", name, {"fast": fast})


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"configurations": [1]}, "configurations: expected a list of str, found 1 in it"),
        ({"seeds": ["1"]}, "seeds: expected a list of int, found '1' in it"),
        ({"first_ns": "1970"}, "first_ns: expected int, found '1970'"),
        ({"data_hash": None}, "data_hash: expected str, found None"),
        ({"kind": "guess"}, "trial kind: expected one of train, backtest, report, sweep, found 'guess'"),
    ],
)
def test_a_value_that_cannot_be_counted_is_one_line_with_its_place(tmp_path, changed, words):
    line = {"schema_version": 1, "kind": "sweep", "data_hash": "d", "window": "test", "first_ns": 0, "last_ns": 9}
    line |= {"configuration_hash": "c"}
    (tmp_path / trials.FILE_NAME).write_text(json.dumps(line) + "\n" + json.dumps(line | changed) + "\n")
    with pytest.raises(RunError, match=re.escape(f"{trials.FILE_NAME}:2: this is not a trial: {words}")):
        trials.read(tmp_path)


def test_each_configuration_of_a_sweep_counts_once_whoever_sees_it_again(tmp_path):
    swept = trials.sweep("d", "train", 100, 200, "shared", [hash_of(fast) for fast in (1, 2, 3, 3)])
    trials.append(tmp_path, [swept, trial(hash_of(2), seeds=()), trial(hash_of(9), seeds=())])
    found = trials.read(tmp_path)
    assert found[0] == swept and len(swept.configurations) == 3
    assert trials.count(found, "d", 150, 160) == 3 + 1
    assert trials.count(found, "d", 201, 300) == 0
    assert len((tmp_path / trials.FILE_NAME).read_text().splitlines()) == 3, "a sweep is one line"


def test_configuration_tells_profile_strategy_and_settings_apart():
    assert len({hash_of(1), hash_of(2), hash_of(1, "other"), trials.configuration("q", "sma_cross", {"fast": 1})}) == 4
    assert hash_of(1) == trials.configuration("p", "sma_cross", {"fast": 1})
