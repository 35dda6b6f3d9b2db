"""Progress: a bar on a terminal, one plain line a minute elsewhere, never on stdout."""

import io
import sys

import pytest

from bellmark.cli import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""
    now = [0.0]
    monkeypatch.setattr(progress.time, "perf_counter", lambda: now[0])
    return now


def test_one_line_a_minute_where_nobody_looks(clock, capsys):
    with progress.training_progress() as show:
        for second in range(0, 200, 10):
            clock[0] = float(second)
            show(second * 5, 1000, 0.25)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "training: 300 of 1000 steps, 5 steps/s, loss 0.25, 140 s left",
        "training: 600 of 1000 steps, 5 steps/s, loss 0.25, 80 s left",
        "training: 900 of 1000 steps, 5 steps/s, loss 0.25, 20 s left",
    ]


def test_steps_of_a_resumed_run_do_not_count_as_speed(clock, capsys):
    with progress.training_progress() as show:
        show(5000, 6000, None)
        clock[0] = 60.0
        show(5060, 6000, None)
    assert capsys.readouterr().err.splitlines() == ["training: 5060 of 6000 steps, 1 steps/s, 940 s left"]


@pytest.mark.parametrize(("quiet_seconds", "said"), [(0.0, True), (5.0, False)])
def test_a_long_preparation_is_said_and_a_short_one_is_not(monkeypatch, capsys, quiet_seconds, said):
    monkeypatch.setattr(progress, "_QUIET_SECONDS", quiet_seconds)
    with progress.training_progress() as show:
        if said:
            show.preparing.join(5.0)
        show(0, 100, None)
    assert capsys.readouterr().err.startswith("preparing: ") == said


def test_a_terminal_gets_a_bar_with_speed_loss_and_time_left(clock, monkeypatch, capsys):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    with progress.training_progress() as show:
        show(0, 100, 1.0)
        clock[0] = 2.0
        show(50, 100, 0.125)
    text = terminal.getvalue()
    assert "training" in text and "50/100" in text and "25 steps/s" in text and "loss 0.125" in text and "left" in text
    assert capsys.readouterr().out == ""


def test_no_color_is_honoured(clock, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    with progress.training_progress() as show:
        show(50, 100, 0.5)
    assert "\x1b[3" not in terminal.getvalue() and "\x1b[38" not in terminal.getvalue()
