"""Tables: whole where nobody looks, readable in terminals of 80 and 120 columns."""

import io
import re
import sys

import pytest

from bellmark.cli.output import print_table
from bellmark.cli.results import SPARE, TABLE

COLUMNS = ["account", *(name.replace("_", " ") for name in TABLE)]
ROWS = [
    ["median of 4 learners", "-13.45%", "-4.35%", "-0.71", "-1.02", "-0.22", "-19.99%", "101.39", "2.18%", "393"],
    ["buy_and_hold", "46.50%", "12.47%", "0.82", "1.18", "0.89", "-14.09%", "0.77", "0.028%", "0"],
]


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of a width; returns the lines that were shown on it."""

    def at(columns, *arguments, **options):
        stream = Terminal()
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm")
        print_table(*arguments, **options)
        return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).splitlines()

    return at


@pytest.mark.parametrize("columns", [80, 100, 120, 200])
def test_no_number_and_no_word_is_broken(terminal, columns):
    lines = terminal(columns, COLUMNS, ROWS, right=COLUMNS[1:], spare=SPARE)
    assert max(map(len, lines)) <= columns
    shown = [column for column in COLUMNS if f" {column.split()[0]} " in " ".join(lines[:4]) + " "]
    for row in ROWS:
        line = next(line for line in lines if row[0] in line)
        assert line.split()[-len(shown) + 1 :] == [cell for column, cell in zip(COLUMNS, row, strict=True) if column in shown[1:]]
    left_out = [column for column in COLUMNS if column not in shown]
    assert (left_out == []) == (columns >= 120)
    if left_out:
        assert lines[-1] == f"left out at {columns} columns: {', '.join(left_out)}"


def test_a_text_wraps_and_a_name_does_not(terminal):
    rows = [("a_component_with_a_long_name", "feature", "plugin", "1.0", "ok", "what it is, said in many words " * 3)]
    columns = ["name", "kind", "plugin", "version", "status", "what it is"]
    lines = terminal(80, columns, rows, whole=("kind", "plugin"), spare=("version", "plugin"))
    assert max(map(len, lines)) <= 80 and any("a_component_with_a_long_name   feature" in line for line in lines)


def test_a_terminal_too_narrow_for_any_table_shows_one_all_the_same(terminal):
    assert max(map(len, terminal(24, COLUMNS, ROWS, right=COLUMNS[1:], spare=SPARE))) <= 24
    assert terminal(80, ["name"], []) != []


def test_nothing_is_left_out_where_nobody_looks(capsys):
    print_table(COLUMNS, ROWS, right=COLUMNS[1:], spare=SPARE)
    out = capsys.readouterr().out
    assert all(cell in out for row in ROWS for cell in row) and "left out" not in out
