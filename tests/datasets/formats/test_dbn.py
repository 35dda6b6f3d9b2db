"""DBN written by the tests with databento-dbn itself: names by day, undefined prices, truncation."""

from datetime import date
from types import SimpleNamespace

import pytest
from format_cases import rows_of, stamps, values

from bellmark.datasets.formats import recognise
from bellmark.errors import DataError

dbn = pytest.importorskip("databento_dbn")
START = 1_709_562_600_000_000_000
DAY = 86_400_000_000_000


def metadata(schema, symbols=("ESH4",), mappings=(), stype_in="raw_symbol"):
    return dbn.Metadata(
        dataset="GLBX.MDP3", start=START, stype_in=dbn.SType(stype_in), stype_out=dbn.SType("instrument_id"), schema=dbn.Schema(schema),
        symbols=list(symbols), mappings=list(mappings),
    ).encode()  # fmt: skip


def mapping(symbol, *spans):
    intervals = [SimpleNamespace(start_date=first, end_date=last, symbol=str(number)) for first, last, number in spans]
    return SimpleNamespace(raw_symbol=symbol, intervals=intervals)


def bar(ts=START, number=17077, opened=5_130_250_000_000):
    record = dbn.OHLCVMsg(
        rtype=dbn.RType.OHLCV_1M, publisher_id=1, instrument_id=number, ts_event=ts, open=opened, high=5_130_750_000_000,
        low=5_128_750_000_000, close=5_129_000_000_000, volume=1565,
    )  # fmt: skip
    return bytes(record)


@pytest.fixture
def read(tmp_path):
    def run(data, **options):
        (tmp_path / "f.dbn").write_bytes(data)
        return rows_of(tmp_path / "f.dbn", "dbn", **options)

    return run


def test_one_symbol_without_a_mapping_is_that_symbol(read, tmp_path):
    frame, facts, _ = read(metadata("ohlcv-1m") + bar() + bar(START + 60 * 10**9, opened=2**63 - 1))
    assert frame["symbol"].to_list() == ["ESH4"] * 2 and values(frame)[0] == (5130.25, 5130.75, 5128.75, 5129.0, 1565)
    assert frame["open"].to_list() == [5130.25, None] and facts.bar_seconds == 60.0 and recognise(tmp_path / "f.dbn") == ["dbn"]
    with pytest.raises(DataError, match="data row 2 .*expected one instrument for 'ESH4', found 17077 and 5"):
        read(metadata("ohlcv-1m") + bar() + bar(number=5))
    frame, _, _ = read(metadata("ohlcv-1m", ("ES.FUT",), stype_in="parent") + bar() + bar(number=5))
    assert frame["symbol"].to_list() == ["17077", "5"]


def test_name_of_an_instrument_is_that_of_the_day(read):
    spans = (date(2024, 3, 4), date(2024, 3, 5), 17077), (date(2024, 3, 5), date(2024, 3, 9), 5)
    data = metadata("ohlcv-1m", ("ES.c.0",), [mapping("ES.c.0", *spans)], "continuous")
    frame, _, _ = read(data + bar() + bar(number=5) + bar(START + DAY, 5) + bar(START + DAY, 17077))
    assert frame["symbol"].to_list() == ["ES.c.0", "5", "ES.c.0", "17077"]
    assert read(data + bar() + bar(number=5), symbol="ES.c.0")[0]["row"].to_list() == [1]


def test_two_names_of_one_instrument_are_asked_about(read):
    span = (date(2024, 3, 4), date(2024, 3, 5), 17077)
    data = metadata("ohlcv-1m", ("ES.c.0", "ES.v.0"), [mapping("ES.c.0", span), mapping("ES.v.0", span)], "continuous") + bar()
    with pytest.raises(DataError, match="instrument 17077 has two names, ES.c.0 and ES.v.0; say one by --symbol"):
        read(data)
    assert read(data, symbol="ES.v.0")[0]["symbol"].to_list() == ["ES.v.0"]


def test_record_that_is_cut_short_is_refused_or_left_out(read):
    data = metadata("ohlcv-1m") + bar() + bar(START + 60 * 10**9)
    for chunk in (1024, 1 << 20):
        with pytest.raises(DataError, match=r"data row 2: the file ends within a record \(46 bytes are left\)"):
            read(data[:-10], chunk_bytes=chunk)
    frame, _, notes = read(data[:-10], truncated="drop")
    assert frame.height == 1 and len(notes) == 1 and "data row 2" in notes[0]
    with pytest.raises(DataError, match="ends within its metadata"):
        read(data[:60])
    with pytest.raises(DataError, match="the file holds no records"):
        read(metadata("ohlcv-1m"))


def test_schema_that_makes_no_bars_and_other_files_are_one_line(read):
    with pytest.raises(DataError, match=r"expected one of ohlcv-1s, .*found mbo, which is not made into bars"):
        read(metadata("mbo"))
    with pytest.raises(DataError, match="expected DBN, which begins with 'DBN'"):
        read(b"ts_event,open\n")
    with pytest.raises(DataError, match="the compressed file ends early"):
        read(b"\x28\xb5\x2f\xfd\x04\x58" + b"\x00" * 40)
    with pytest.raises(DataError, match="it is DBZ"):
        read(b"P*M\x18" + b"\x00" * 40)


def test_stamps_of_several_chunks_count_on(read):
    frame, _, _ = read(metadata("ohlcv-1m") + b"".join(bar(START + n * 60 * 10**9) for n in range(200)), chunk_bytes=1024)
    assert frame["row"].to_list() == list(range(1, 201)) and stamps(frame)[-1] == "2024-03-04T17:49:00Z"
