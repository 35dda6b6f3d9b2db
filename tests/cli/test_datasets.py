"""`datasets show`: what a file holds, and the events of markets that have them."""

import pytest

pytestmark = pytest.mark.cpu

ROWS = """\
ts,open,high,low,close,volume,halted,rate,next
2020-01-01T16:00,10,10,10,10,5,0,,
2020-01-02T16:00,10,10,10,10,0,1,0.0001,
2020-01-03T16:00,10,10,10,10,,0,-0.0001,11
2020-01-06T16:00,10,10,10,10,5,0,,
"""
READ = ("stamp=close", "zone=UTC", "symbol=X")
EVENTS = ("halted_column=halted", "funding_rate_column=rate", "roll_price_column=next")


def show(bellmark, tmp_path, *sets):
    (tmp_path / "bars.csv").write_text(ROWS)
    words = [word for text in ("path=bars.csv", *READ, *sets) for word in ("--set", text)]
    return bellmark("datasets", "show", "csv", *words, "--json").json[0], bellmark("datasets", "show", "csv", *words).out


def test_volumes_and_events_are_counted(bellmark, tmp_path):
    row, printed = show(bellmark, tmp_path, *EVENTS)
    counted = ("zero_volume_bars", "unknown_volume_bars", "halted_bars", "funding_instants", "rolls", "quotes")
    assert [row[name] for name in counted] == [1, 1, 1, 2, 1, False]
    assert "halted bars   funding instants   rolls" in printed and "quotes" not in printed


def test_events_that_a_market_lacks_are_in_the_json_alone(bellmark, tmp_path):
    row, printed = show(bellmark, tmp_path)
    assert (row["halted_bars"], row["rolls"], row["quotes"]) == (0, 0, False)
    assert "zero volume bars" in printed and "rolls" not in printed and "halted" not in printed
