"""Files as blocks of lines: encodings, compression, zips, damage, and bounds on what is held in memory."""

import gzip
import io
import tracemalloc
import zipfile

import pytest
from format_cases import read, rows_of, stamps, values

from bellmark.datasets.formats import Options, open_rows, recognise
from bellmark.errors import DataError, UsageError

HEADER = "ts,open,high,low,close,volume\n"
ROWS = [f"2024-03-04T14:{minute:02}:00Z,{100 + minute},{101 + minute},{99 + minute},{100 + minute},{minute}\n" for minute in range(60)]
TEXT = HEADER + "".join(ROWS)
SAID = {"symbol": "X", "stamp": "close"}


def zipped(folder, members, name="bars.zip"):
    path = folder / name
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, data in members.items():
            archive.writestr(member, data)
    return path


@pytest.mark.parametrize(
    "encoded",
    [
        TEXT.encode(),
        b"\xef\xbb\xbf" + TEXT.encode(),
        TEXT.replace("\n", "\r\n").encode(),
        b"\xff\xfe" + TEXT.encode("utf-16-le"),
        b"\xfe\xff" + TEXT.encode("utf-16-be"),
        gzip.compress(TEXT.encode()),
        TEXT.rstrip("\n").encode(),
    ],
    ids=["plain", "mark", "windows", "utf-16-le", "utf-16-be", "gzip", "no last line end"],
)
@pytest.mark.parametrize("chunk_bytes", [1024, 1 << 20])
def test_encoding_and_compression_do_not_change_the_rows(tmp_path, encoded, chunk_bytes):
    frame, _, _ = read(tmp_path, encoded, "csv", chunk_bytes=chunk_bytes, **SAID)
    assert frame.height == 60 and values(frame)[7] == (107, 108, 106, 107, 7) and frame["row"].to_list() == list(range(1, 61))


def test_chunks_end_at_lines_and_count_on(tmp_path):
    (tmp_path / "bars.csv").write_text(TEXT)
    chunks = list(open_rows([tmp_path / "bars.csv"], "csv", Options(chunk_bytes=1024, **SAID)))
    assert len(chunks) > 2 and sum(chunk.frame.height for chunk in chunks) == 60
    assert [chunk.first_row for chunk in chunks] == [chunk.frame["row"][0] for chunk in chunks]
    reads = [chunk.read_bytes for chunk in chunks]
    assert reads == sorted(reads) and reads[-1] == chunks[-1].total_bytes == len(TEXT)


def test_progress_goes_over_all_files(tmp_path):
    for name in "ab":
        (tmp_path / name).write_text(TEXT)
    chunks = list(open_rows([tmp_path / "a", tmp_path / "b"], "csv", Options(**SAID)))
    assert [chunk.read_bytes for chunk in chunks] == [len(TEXT), 2 * len(TEXT)]


def test_zip_members_come_in_the_order_of_their_names_and_name_themselves(tmp_path):
    path = zipped(tmp_path, {"b/2.csv": HEADER + ROWS[1], "b/1.csv": HEADER + ROWS[0], "__MACOSX/b/1.csv": "x"})
    chunks = list(open_rows([path], "csv", Options(**SAID)))
    assert [chunk.source for chunk in chunks] == [f"{path}!b/1.csv", f"{path}!b/2.csv"]
    assert [stamps(chunk.frame)[0][11:16] for chunk in chunks] == ["14:00", "14:01"]
    with pytest.raises(DataError, match=r"bars.zip!1.csv: data row 2 .*expected a number, found 'x'"):
        rows_of(zipped(tmp_path, {"1.csv": HEADER + ROWS[0] + ROWS[1].replace("101,102", "x,102")}), "csv", **SAID)


def test_name_of_a_member_is_shown_and_never_a_path(tmp_path):
    frame, _, _ = rows_of(zipped(tmp_path, {"../../out\nside.csv": TEXT}), "csv", **SAID)
    assert frame.height == 60 and [path.name for path in tmp_path.iterdir()] == ["bars.zip"]


def test_zip_that_inflates_to_much_is_read_without_holding_it(tmp_path):
    """Thirty megabytes of blank lines take a thousandth of that in the zip; they are streamed, and no memory of their size is taken."""
    big = io.BytesIO()
    with zipfile.ZipFile(big, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("bars.csv", "w") as member:
        member.write(TEXT.encode())
        for _ in range(30):
            member.write(b"\n" * (1 << 20))
    path = tmp_path / "bars.zip"
    path.write_bytes(big.getvalue())
    assert path.stat().st_size < 60_000
    tracemalloc.start()
    try:
        frame, _, _ = rows_of(path, "csv", chunk_bytes=1 << 18, **SAID)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert frame.height == 60 and peak < 4 << 20


def test_line_without_an_end_is_refused_before_it_fills_the_memory(tmp_path):
    with pytest.raises(DataError, match="line 2: expected a line end within 1048576 bytes, found none"):
        read(tmp_path, HEADER + "1" * (3 << 20), "csv", **SAID)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (gzip.compress(TEXT.encode())[:-40], "compressed file is damaged or ends early"),
        (b"PK\x03\x04 this is no zip", "cannot be read as a zip"),
        (b"BZh9" + b"x" * 50, "another compression"),
        (b"\x00\x01\x02\x03" * 40, "found bytes of another kind of file"),
        ((HEADER + ROWS[0]).encode() + "2024-03-04T14:01:00Z,1,1,1,1,\xfc\n".encode("latin-1"),
         r"line 3: it cannot be read as UTF-8 text: byte 0xfc"),
        ((HEADER + ROWS[0]).replace("\n", "\r").encode(), "carriage return alone"),
        (b"\xff\xfe" + TEXT.encode("utf-16-le")[:-1], "cannot be read as UTF-16"),
        (b"", "the file is empty"),
    ],
)
def test_file_that_is_no_whole_text_is_one_line(tmp_path, data, message):
    with pytest.raises(DataError, match=message) as caught:
        read(tmp_path, data, "csv", **SAID)
    assert "\n" not in str(caught.value) and "file.txt" in str(caught.value)


def test_encrypted_and_empty_zips_are_refused(tmp_path):
    path = zipped(tmp_path, {"a.csv": TEXT})
    data = bytearray(path.read_bytes())
    for place in (data.index(b"PK\x03\x04") + 6, data.index(b"PK\x01\x02") + 8):
        data[place] |= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"bars.zip!a.csv: the member is encrypted"):
        rows_of(path, "csv", **SAID)
    with pytest.raises(DataError, match="the zip holds no files"):
        rows_of(zipped(tmp_path, {}), "csv", **SAID)


def test_zstandard_is_read_or_says_what_it_needs(tmp_path):
    with pytest.raises((UsageError, DataError), match="Zstandard needs|damaged"):
        read(tmp_path, b"\x28\xb5\x2f\xfd\x00\x00", "csv", **SAID)


def test_folder_missing_file_and_unknown_format_are_one_line(tmp_path):
    with pytest.raises(DataError, match="expected a file, found a folder"):
        rows_of(tmp_path, "csv")
    with pytest.raises(DataError, match="no such file"):
        rows_of(tmp_path / "no.csv", "csv")
    with pytest.raises(UsageError, match="no format named 'binanse'; did you mean 'binance'"):
        rows_of(tmp_path, "binanse")


@pytest.mark.parametrize("data", [b"", b"\x00" * 10, b"PK\x03\x04junk", gzip.compress(b"x", mtime=0)[:10], b"a,b\n1,2\n", b"\xff\xfea"])
def test_strange_file_is_recognised_as_nothing(tmp_path, data):
    (tmp_path / "f").write_bytes(data)
    assert recognise(tmp_path / "f") == []
