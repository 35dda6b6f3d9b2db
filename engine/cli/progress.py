"""Progress of training on stderr: a bar on a terminal, else one plain line a minute."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from bellmark.cli.output import say

_LINE_SECONDS = 60.0
_QUIET_SECONDS = 5.0


@contextmanager
def training_progress() -> Iterator[Any]:
    """A function `progress(done, total, loss)` that shows how far training is: steps a second, loss, time left."""
    if sys.stderr.isatty():
        with _bar() as show:
            yield show
    else:
        lines = _Lines()
        try:
            yield lines
        finally:
            lines.preparing.cancel()


@contextmanager
def _bar() -> Iterator[Any]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from bellmark.cli.output import console

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TextColumn("{task.fields[loss]}"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns, console=console(sys.stderr), transient=True) as bar:
        task = bar.add_task("preparing", total=None, rate="", loss="")
        rate = _Rate()

        def show(done: int, total: int, loss: float | None = None) -> None:
            text = "" if loss is None else f"loss {loss:.4g}"
            bar.update(task, description="training", completed=done, total=total, rate=f"{rate.of(done):,.0f} steps/s", loss=text)

        yield show


class _Rate:
    """Steps a second since the first call; work done before (a resumed run) does not count."""

    def __init__(self) -> None:
        self.start: tuple[int, float] | None = None

    def of(self, done: int) -> float:
        now = time.perf_counter()
        if self.start is None:
            self.start = (done, now)
        first, then = self.start
        return (done - first) / (now - then) if now > then else 0.0


class _Lines:
    def __init__(self) -> None:
        self.rate = _Rate()
        self.printed = time.perf_counter()
        # After a while only: what fails at once is one line of error and nothing else.
        self.preparing = threading.Timer(_QUIET_SECONDS, say, ["preparing: the first run on a machine compiles its code, about a minute"])
        self.preparing.daemon = True
        self.preparing.start()

    def __call__(self, done: int, total: int, loss: float | None = None) -> None:
        self.preparing.cancel()
        speed = self.rate.of(done)
        now = time.perf_counter()
        if now - self.printed < _LINE_SECONDS:
            return
        self.printed = now
        left = f"{(total - done) / speed:.0f} s left" if speed > 0.0 else "time left unknown"
        text = "" if loss is None else f", loss {loss:.4g}"
        click.echo(f"training: {done} of {total} steps, {speed:,.0f} steps/s{text}, {left}", err=True)
