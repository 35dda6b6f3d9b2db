"""The profiles of docs/your-own-bars.md train on files like those that it describes."""

import datetime
import re
from pathlib import Path

import pytest

import bellmark

PAGE = (Path(__file__).parents[2] / "docs" / "your-own-bars.md").read_text(encoding="utf-8")
PROFILES = {text.splitlines()[0].removeprefix("# "): text for text in re.findall(r"```toml\n(.*?)```", PAGE, flags=re.DOTALL)}
SHORT = {"trainer.epochs": 1, "trainer.updates_per_epoch": 20, "learners.count": 1, "environment.episode_bars": 60}

pytestmark = pytest.mark.cpu


def weekdays(number):
    days = (datetime.date(2020, 1, 2) + datetime.timedelta(days=day) for day in range(2 * number))
    return [day for day in days if day.weekday() < 5][:number]


def write_bars(path, header, stamps):
    rows = [f"{stamp},{100 + k % 7},{108 + k % 3},{98 - k % 3},{100 + (k + 1) % 7},{1000 + k % 5}" for k, stamp in enumerate(stamps)]
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")


def minutes():
    for day in weekdays(8):
        opening = datetime.datetime.combine(day, datetime.time(9, 30))
        yield from (f"{opening + datetime.timedelta(minutes=minute):%Y-%m-%d %H:%M:%S}" for minute in range(390))


@pytest.mark.slow
def test_profiles_train_as_they_stand(tmp_path, monkeypatch):
    assert set(PROFILES) == {"imported.toml", "daily.toml", "minute.toml"}
    monkeypatch.chdir(tmp_path)
    write_bars(tmp_path / "daily.csv", "Date,Open,High,Low,Close,Volume", weekdays(900))
    write_bars(tmp_path / "minute.csv", "time,open,high,low,close,volume", minutes())
    how = {"symbol": "XYZ", "stamp_column": "Date", "stamp": "close", "zone": "America/New_York", "close_time": "16:00"}
    bellmark.import_dataset("daily.csv", format="csv", name="xyz", tick_size=0.01, **how)
    for name, text in PROFILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        run = bellmark.train(name, overrides=SHORT)
        assert run.metrics().height == 1
        frame = bellmark.evaluate(bellmark.backtest(run), run=run)
        assert frame.filter(frame["metric"] == "costs")["value"].item() >= 0.0
