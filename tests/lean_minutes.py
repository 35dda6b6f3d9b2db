"""Minutes of one futures contract out of Lean's daily zips, read without the import of Bellmark."""

import zipfile

import numpy as np

from bellmark import clock
from bellmark.bars import Bars


def lean_minutes(folder, contract, year):
    """Trades of one contract out of Lean's daily zips (stamps are ms of the UTC day, the bar's open)."""
    rows = []
    for path in sorted(folder.glob(f"{year}*_trade.zip")):
        midnight = int(np.datetime64(f"{path.name[:4]}-{path.name[4:6]}-{path.name[6:8]}", "ns").astype(np.int64))
        with zipfile.ZipFile(path) as archive:
            for member in archive.namelist():
                if member.removesuffix(".csv").endswith(contract):
                    for line in archive.read(member).decode().split():
                        cells = line.split(",")
                        rows.append((midnight + int(cells[0]) * 1_000_000 + 60 * clock.SECOND, *map(float, cells[1:6])))
    columns = list(zip(*rows, strict=True))
    return Bars("ES", np.array(columns[0], np.int64), *(np.array(column) for column in columns[1:]))
