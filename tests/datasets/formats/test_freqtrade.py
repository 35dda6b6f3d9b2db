"""freqtrade's JSON, read in pieces."""

import json

import pytest
from format_cases import read, stamps, values

from bellmark.errors import DataError

BARS = [[1735689600000 + 300_000 * n, 100, 101.5, 99, 100.25, n] for n in range(300)]


@pytest.mark.parametrize("text", [json.dumps(BARS), json.dumps(BARS, indent=1), json.dumps(BARS, separators=(",", ":")) + "\n\n"])
@pytest.mark.parametrize("chunk_bytes", [64, 1000, 1 << 20])
def test_pieces_do_not_change_the_rows(tmp_path, text, chunk_bytes):
    frame, facts, _ = read(tmp_path, text, "freqtrade", name="BTC_USDT-5m.json", chunk_bytes=chunk_bytes)
    assert frame.height == 300 and values(frame)[7] == (100, 101.5, 99, 100.25, 7) and frame["row"].to_list() == list(range(1, 301))
    assert frame["symbol"][0] == "BTC/USDT" and facts.bar_seconds == 300.0 and stamps(frame)[0] == "2025-01-01T00:00:00Z"


def test_futures_and_nulls(tmp_path):
    frame, facts, _ = read(tmp_path, "[[1735689600000,1,2,1,null,7]]", "freqtrade", name="BTC_USDT_USDT-1h-futures.json")
    assert frame["close"].to_list() == [None] and facts.bar_seconds == 3600.0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{}", "expected a list of bars"),
        ("[]", "the file holds no bars"),
        ("[[1735689600000,1,2,1,1,7]", "the file is cut short|cannot be read as JSON"),
        ("[[1735689600000,1,2,1,1,7],[1735689900000,1,2", "cut short"),
        ("[[1735689600000,1,2,1,1,7],[1735689900000,1,2,1,1]]", r"data row 2: expected \[ms, open"),
        ('[[1735689600000,1,2,1,1,"7"]]', r"data row 1: expected \[ms, open"),
        ("[[1735689600000,1,2,1,true,7]]", r"data row 1: expected \[ms, open"),
        ("[[1735689600.5,1,2,1,1,7]]", "data row 1: expected milliseconds since 1970, found 1735689600.5"),
        ("[[17356896000,1,2,1,1,7]]", "data row 1 .*of 11 digits"),
        ("[[173568960000000000000000,1,2,1,1,7]]", "data row 1: expected milliseconds since 1970, found 173568960000000000000000"),
        ("[[[[[[1]]]]]]", "data row 1: expected"),
    ],
)
@pytest.mark.parametrize("chunk_bytes", [64, 1 << 20])
def test_what_is_no_list_of_bars_is_one_line(tmp_path, text, message, chunk_bytes):
    with pytest.raises(DataError, match=message) as caught:
        read(tmp_path, text, "freqtrade", symbol="X", chunk_bytes=chunk_bytes)
    assert "\n" not in str(caught.value)
