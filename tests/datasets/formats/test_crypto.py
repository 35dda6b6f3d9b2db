"""Binance and CryptoDataDownload: units that change within a file, headers that come and go, newest first."""

import zipfile

import pytest
from format_cases import SHARED, read, rows_of, stamps

from bellmark.datasets.formats import recognise
from bellmark.errors import DataError, UsageError

KLINES = "open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore\n"
MS, US = 1735689540000, 1735689600000000


def kline(opened, unit=1, seconds=60):
    return f"{opened},1,2,0.5,1.5,7,{opened + seconds * 1000 * unit - 1},70,3,4,40,0\n"


def test_milliseconds_and_microseconds_in_one_column(tmp_path):
    text = kline(MS) + kline(US, 1000) + kline(US + 60_000_000, 1000)
    frame, facts, _ = read(tmp_path, text, "binance", symbol="X")
    assert stamps(frame) == ["2024-12-31T23:59:00Z", "2025-01-01T00:00:00Z", "2025-01-01T00:01:00Z"] and facts.bar_seconds == 60.0
    assert frame["trades"].to_list() == [3, 3, 3] and frame["quote_volume"][0] == 70 and facts.stamp == "open"


@pytest.mark.parametrize("opened", ["173568954000", "17356895400000000", "99999999999999"])
def test_digits_of_no_unit_are_refused(tmp_path, opened):
    with pytest.raises(DataError, match="data row 2 .*expected epoch time of 10 .*13 .*16 .*19"):
        read(tmp_path, kline(MS) + kline(MS).replace(str(MS), opened, 1), "binance", symbol="X")


def test_header_may_be_there_and_the_name_of_the_file_is_the_symbol(tmp_path):
    path = tmp_path / "BTCUSDT-1h-2025-01.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("BTCUSDT-1h-2025-01.csv", KLINES + kline(MS, seconds=3600))
    frame, facts, _ = rows_of(path, "binance")
    assert frame["symbol"].to_list() == ["BTCUSDT"] and facts.bar_seconds == 3600.0 and recognise(path) == ["binance"]
    assert rows_of(path, "binance", symbol="BTC")[0]["symbol"].to_list() == ["BTC"]
    with pytest.raises(UsageError, match="--symbol: expected a name"):
        read(tmp_path, kline(MS), "binance")


def test_bars_of_months_have_no_one_length(tmp_path):
    text = "".join(kline(MS + sum(days[:n]) * 86_400_000, seconds=days[n] * 86_400) for days in ([31, 28, 31, 30],) for n in range(4))
    assert read(tmp_path, text, "binance", symbol="X")[1].bar_seconds is None


@pytest.mark.skipif(not SHARED.is_dir(), reason="the cases are not beside this repository")
def test_case_of_units_that_change():
    frame, facts, _ = rows_of(SHARED / "cases" / "03_epoch_ms_then_us" / "klines.csv", "binance", symbol="X")
    assert stamps(frame) == ["2024-12-31T23:58:00Z", "2024-12-31T23:59:00Z", "2025-01-01T00:00:00Z", "2025-01-01T00:01:00Z"]
    assert facts.bar_seconds == 60.0


def test_funding_keeps_late_stamps_and_intervals(tmp_path):
    text = "calc_time,funding_interval_hours,last_funding_rate\n1735689600007,8,0.0001\n1735704000000,4,-0.00002137\n"
    frame, _, _ = read(tmp_path, text, "binance_funding", name="ETHUSDT-fundingRate-2025-01.csv")
    assert frame.select("symbol", "rate", "interval_hours").rows() == [("ETHUSDT", 0.0001, 8), ("ETHUSDT", -0.00002137, 4)]
    assert stamps(frame, "ms")[0].endswith("00.007Z")


NEW = "https://www.CryptoDataDownload.com\nunix,date,symbol,open,high,low,close,Volume ETH,Volume USDT,tradecount\n"
OLD = "Timestamps are UTC timezone,https://www.CryptoDataDownload.com\nDate,Symbol,Open,High,Low,Close,Volume BTC,Volume USD\n"


def test_newest_first_is_known_of_the_layout(tmp_path):
    rows = [f"{1735689600000 + hour * 3_600_000},d,ETH/USDT,1,2,0.5,1.5,7,70,3\n" for hour in (2, 1, 0)]
    frame, facts, _ = read(tmp_path, NEW + "".join(rows), "cryptodatadownload")
    assert facts.order == "descending" and frame.select("volume", "quote_volume", "trades").row(0) == (7, 70, 3)
    assert read(tmp_path, NEW + "".join(rows[::-1]), "cryptodatadownload")[1].order == "ascending"
    assert read(tmp_path, NEW.split("\n", 1)[1] + rows[0], "cryptodatadownload")[0].height == 1  # without the address
    frame, _, _ = read(tmp_path, NEW + "1735689600,d,ETH/USDT,1,2,0.5,1.5,7,70,3\n", "cryptodatadownload")
    assert stamps(frame) == ["2025-01-01T00:00:00Z"]


def test_hours_of_twelve(tmp_path):
    hours = ["2019-10-17 01-AM", "2019-10-17 12-AM", "2019-10-16 11-PM", "2019-10-16 12-PM"]
    text = OLD + "".join(f"{hour},BTCUSD,1,2,0.5,1.5,7,70\n" for hour in hours)
    frame, facts, _ = read(tmp_path, text, "cryptodatadownload")
    assert [text[5:13] for text in stamps(frame)] == ["10-17T01", "10-17T00", "10-16T23", "10-16T12"] and facts.order == "descending"
    with pytest.raises(DataError, match="data row 1 .*'2019-10-17 13-PM'"):
        read(tmp_path, OLD + "2019-10-17 13-PM,BTCUSD,1,2,0.5,1.5,7,70\n", "cryptodatadownload")
    with pytest.raises(DataError, match="no column that begins with 'Volume'"):
        read(tmp_path, OLD.replace("Volume", "Turnover") + "x\n", "cryptodatadownload")
