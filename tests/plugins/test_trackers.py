"""The jsonl tracker keeps a copy of the run's rows."""

import pytest

from bellmark.component import make
from bellmark.errors import PluginError, RunError, UsageError
from bellmark.plugins.trackers import TRACKERS, Jsonl
from bellmark.run import Run


def log(run, tracker, epoch):
    rows = [{"epoch": epoch, "learner": learner, "val_loss": None} for learner in (0, 1)]
    run.write_metric_rows(rows)
    tracker.log(rows)


def test_copy_equals_the_metrics_of_the_run(tmp_path):
    run, tracker = Run(tmp_path), make(Jsonl, {}, "trackers.copy")
    tracker.start(run)
    log(run, tracker, 1)
    log(run, tracker, 2)
    tracker.finish("done")
    assert (tmp_path / "tracker.jsonl").read_bytes() == (tmp_path / "metrics.jsonl").read_bytes()


def test_resumed_run_leaves_the_bytes_of_one_that_never_stopped(tmp_path):
    run, tracker = Run(tmp_path), Jsonl(file="copies/rows.jsonl")
    tracker.start(run)
    log(run, tracker, 1)
    log(run, tracker, 2)  # killed here, before the checkpoint of epoch 2
    run.truncate_metrics(1)
    again = Jsonl(file="copies/rows.jsonl")
    again.start(run)
    log(run, again, 2)
    assert (tmp_path / "copies" / "rows.jsonl").read_bytes() == (tmp_path / "metrics.jsonl").read_bytes()
    assert len(run.metric_rows()) == 4


def test_rows_before_start_or_after_finish_are_an_error(tmp_path):
    tracker = Jsonl()
    with pytest.raises(PluginError, match="start"):
        tracker.log([{}])
    tracker.start(Run(tmp_path))
    tracker.finish("done")
    with pytest.raises(PluginError, match="start"):
        tracker.log([{}])


def test_file_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "taken").write_text("x")
    with pytest.raises(RunError, match="taken"):
        Jsonl(file="taken/rows.jsonl").start(Run(tmp_path))


def test_settings_decide_equality_not_the_bound_run(tmp_path):
    bound = Jsonl()
    bound.start(Run(tmp_path))
    assert bound == Jsonl() and [Jsonl] == TRACKERS


@pytest.mark.parametrize(
    "file", ["metrics.jsonl", "profile.toml", "./x/../manifest.json", "checkpoints/index.json", "report.json", "../other/metrics.jsonl"]
)
def test_file_of_a_run_itself_is_refused_and_left_as_it_was(tmp_path, file):
    for run in ("mine", "other"):
        (tmp_path / run / "checkpoints").mkdir(parents=True)
        (tmp_path / run / "x").mkdir()
        (tmp_path / run / "profile.toml").write_text("schema_version = 1")
    path = tmp_path / "mine" / file
    path.write_text('{"schema_version":1,"epoch":1,"learner":0}\n')
    with pytest.raises(UsageError, match="belongs to the run itself"):
        Jsonl(file=file).start(Run(tmp_path / "mine"))
    assert path.read_text() == '{"schema_version":1,"epoch":1,"learner":0}\n'


@pytest.mark.parametrize("content", ["my notes\n", "ts,open\n1,2\n", "[1]\n[2]\n", "\x00\x01\n\n", "one line"])
def test_file_that_holds_something_else_is_refused_and_left_as_it_was(tmp_path, content):
    (tmp_path / "run").mkdir()
    path = tmp_path / "bars.csv"
    path.write_text(content)
    with pytest.raises(UsageError, match="would be lost"):
        Jsonl(file=str(path)).start(Run(tmp_path / "run"))
    assert path.read_text() == content
