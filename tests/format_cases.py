"""Files of every layout, written by the tests themselves, and the way to read them back."""

from pathlib import Path

import polars as pl

from bellmark import clock
from bellmark.datasets.formats import Options, open_rows

SHARED = Path(__file__).parents[2] / "shared"


def rows_of(path, form, **options):
    """All chunks of a file as one frame, the facts of the last, and all notes; an empty frame where no symbol was wanted."""
    chunks = list(open_rows([path], form, Options(**options)))
    frames = [chunk.frame for chunk in chunks if chunk.frame.height]
    frame = pl.concat(frames) if frames else pl.DataFrame()
    return frame, chunks[-1].facts if chunks else None, [note for chunk in chunks for note in chunk.notes]


def read(folder, text, form, name="file.txt", **options):
    """Rows of a text (or bytes) in one format."""
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return rows_of(path, form, **options)


def stamps(frame, unit="s"):
    return [clock.text(ts, unit) for ts in frame["ts"]]


def values(frame, *names):
    """Rows as tuples of some columns."""
    return frame.select(names or ("open", "high", "low", "close", "volume")).rows()
