"""Makes es_minute.csv, which the profile `es_minute` reads, from minute bars of one future in the zip files of LEAN.

    python examples/es_minute_bars.py ../shared/data/01_es_minute_lean es_minute.csv --contract 201312
    bellmark train es_minute --set data.path=es_minute.csv

Each file DATE_trade.zip holds a text CONTRACT for each delivery month, without a header: milliseconds since midnight UTC at which the bar
opens, open, high, low, close, volume. Minutes without a trade have no row. The stamp written here is the close of the bar, in UTC.
"""

import argparse
import csv
import datetime
import io
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

MINUTE = datetime.timedelta(minutes=1)


def bars(folder: Path, contract: str) -> Iterator[list[str]]:
    """The rows of one contract in time order: stamp of the close, open, high, low, close, volume."""
    for path in sorted(folder.glob("*_trade.zip")):
        midnight = datetime.datetime.strptime(path.name[:8], "%Y%m%d").replace(tzinfo=datetime.UTC)
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(f"_trade_{contract}.csv"):
                    text = io.TextIOWrapper(archive.open(name), encoding="utf-8", newline="")
                    for milliseconds, *values in csv.reader(text):
                        close = midnight + datetime.timedelta(milliseconds=int(milliseconds)) + MINUTE
                        yield [close.strftime("%Y-%m-%dT%H:%M:%SZ"), *values]


def main() -> int:
    """Writes the file and says how many bars it holds."""
    parser = argparse.ArgumentParser(description="LEAN minute bars of one future as one CSV file.")
    parser.add_argument("folder", type=Path, help="folder with files DATE_trade.zip")
    parser.add_argument("output", type=Path, nargs="?", default=Path("es_minute.csv"))
    parser.add_argument("--contract", default="201312", help="delivery month as YYYYMM (default: 201312)")
    options = parser.parse_args()
    rows = list(bars(options.folder, options.contract))
    if not rows:
        print(f"error: {options.folder}: no bars of contract {options.contract} in files named *_trade.zip", file=sys.stderr)
        return 1
    with open(options.output, "w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["ts", "open", "high", "low", "close", "volume"])
        writer.writerows(rows)
    print(f"{options.output}: {len(rows)} bars, {rows[0][0]} to {rows[-1][0]}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
