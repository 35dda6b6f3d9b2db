"""Databento's CSV: raw and pretty forms, undefined prices, instruments without a symbol."""

import pytest
from format_cases import read, stamps, values

from bellmark.errors import DataError

HEADER = "ts_event,rtype,publisher_id,instrument_id,open,high,low,close,volume,symbol\n"
RAW = "1709562600000000000,33,1,17077,5130250000000,5130750000000,5128750000000,5129000000000,1565,ESH4\n"
PRETTY = "2024-03-04T14:30:00.000000000Z,33,1,17077,5130.250000000,5130.750000000,5128.750000000,5129.000000000,1565,ESH4\n"


@pytest.mark.parametrize("row", [RAW, PRETTY, PRETTY.replace("2024-03-04T14:30:00.000000000Z", "1709562600000000000")])
def test_raw_and_pretty_are_the_same_bars(tmp_path, row):
    frame, facts, _ = read(tmp_path, HEADER + row, "databento_csv")
    assert stamps(frame) == ["2024-03-04T14:30:00Z"] and values(frame) == [(5130.25, 5130.75, 5128.75, 5129.0, 1565)]
    assert (facts.stamp, facts.bar_seconds) == ("open", 60.0)


def test_undefined_price_is_none_and_tiny_and_negative_ones_are_exact(tmp_path):
    rows = RAW.replace("5130250000000", "9223372036854775807") + RAW.replace("5130250000000", "-37630000000").replace("5129000000000", "1")
    frame, _, _ = read(tmp_path, HEADER + rows, "databento_csv")
    assert frame["open"].to_list() == [None, -37.63] and frame["close"].to_list() == [5129.0, 1e-9]


def test_forms_that_are_mixed_and_kinds_of_bars_that_change_are_refused(tmp_path):
    with pytest.raises(DataError, match="data row 2, column 'open'|data row 2 .*column 'open': expected prices in one form"):
        read(tmp_path, HEADER + RAW + PRETTY.replace("2024-03-04T14:30:00.000000000Z", "1709562660000000000"), "databento_csv")
    with pytest.raises(DataError, match="data row 2 .*column 'rtype': expected one kind of record"):
        read(tmp_path, HEADER + RAW + RAW.replace(",33,", ",34,"), "databento_csv")
    with pytest.raises(DataError, match="column 'rtype': expected 32, 33, 34 or 35"):
        read(tmp_path, HEADER + RAW.replace(",33,", ",99,"), "databento_csv")


WHOLE = "2024-03-04T14:{minute:02}:00.000000000Z,33,1,17077,65000,65005,64995,65000,10,BTCH4\n"


@pytest.mark.parametrize("chunk_bytes", [1024, 1 << 20])
def test_whole_prices_are_not_taken_for_counts_of_1e_9(tmp_path, chunk_bytes):
    texts = WHOLE, WHOLE.replace("65000,65005", "65000.5,65005.0").replace("64995,65000", "64995.0,65000.0")
    whole, pretty = ("".join(text.format(minute=minute) for minute in range(30)) for text in texts)
    with pytest.raises(DataError, match="data row 1 .*column 'open': prices without a point, '65000', .* may be whole or counted in 1e-9"):
        read(tmp_path, HEADER + whole, "databento_csv", chunk_bytes=chunk_bytes)
    assert values(read(tmp_path, HEADER + pretty, "databento_csv", chunk_bytes=chunk_bytes)[0])[29] == (65000.5, 65005, 64995, 65000, 10)
    with pytest.raises(DataError, match="expected prices in one form"):
        read(tmp_path, HEADER + pretty + whole, "databento_csv", chunk_bytes=chunk_bytes)
    with pytest.raises(DataError, match="data row 1, column|expected prices in one form"):  # a column of whole prices among others
        read(tmp_path, HEADER + pretty.replace("65005.0", "65005"), "databento_csv", chunk_bytes=chunk_bytes)


def test_instrument_without_a_symbol_is_its_number_or_the_name_of_the_user(tmp_path):
    bare, row = HEADER.replace(",symbol", ""), RAW.replace(",ESH4", "")
    assert read(tmp_path, bare + row, "databento_csv")[0]["symbol"].to_list() == ["17077"]
    assert read(tmp_path, bare + row, "databento_csv", symbol="ESH4")[0]["symbol"].to_list() == ["ESH4"]
    two = bare + row + row.replace("17077", "17078")
    assert read(tmp_path, two, "databento_csv", symbol="17078")[0]["row"].to_list() == [2]
    with pytest.raises(DataError, match="data row 2 .*expected one instrument"):
        read(tmp_path, two, "databento_csv", symbol="ESH4")


def test_trades_are_stamped_with_the_time_of_receipt(tmp_path):
    header = "ts_recv,ts_event,rtype,publisher_id,instrument_id,action,side,depth,price,size,flags,ts_in_delta,sequence,symbol\n"
    row = "1709562600000000009,1709562600000000001,0,1,17077,T,B,0,5130250000000,2,0,1,1,ESH4\n"
    frame, facts, _ = read(tmp_path, header + row, "databento_csv")
    assert frame.select("ts", "price", "size").row(0) == (1709562600000000009, 5130.25, 2) and facts.stamp == ""
    with pytest.raises(DataError, match="data row 1 .*expected trades alone .*found 'A'"):
        read(tmp_path, header + row.replace(",T,", ",A,"), "databento_csv")
    with pytest.raises(DataError, match=r"expected bars \(ohlcv\), trades or tbbo, found columns ts_recv, order_id"):
        read(tmp_path, "ts_recv,order_id\n1,2\n", "databento_csv")
