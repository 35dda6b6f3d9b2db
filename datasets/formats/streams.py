"""Files as blocks of whole lines of UTF-8 text, through gzip, Zstandard and zip, with memory bounded by a block.

Archives are untrusted: members are streamed, never inflated whole, and their names are shown but never used as paths.
"""

from __future__ import annotations

import codecs
import gzip
import lzma
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any

from bellmark.datasets.formats.layout import LEAST_CHUNK
from bellmark.errors import DataError, UsageError
from bellmark.files import reason

LONGEST_LINE = 1 << 20
HEAD_BYTES = 1 << 16
_SHOWN_NAME = 120
_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_DAMAGED = (EOFError, zlib.error, zipfile.BadZipFile, lzma.LZMAError, NotImplementedError, RuntimeError, OverflowError, struct.error)


class Meter:
    """How far reading has come, in bytes of the files as they lie on disk."""

    def __init__(self, total: int) -> None:
        self.total = total
        self._before = 0
        self._file: IO[bytes] | None = None
        self._read = 0

    @property
    def read(self) -> int:
        """Bytes read so far; it never falls."""
        if self._file is not None and not self._file.closed:
            self._read = max(self._read, self._before + self._file.tell())
        return min(self._read, self.total)

    @contextmanager
    def opened(self, path: Path) -> Iterator[IO[bytes]]:
        """The file, measured while it is open."""
        try:
            file = path.open("rb")
        except OSError as error:
            raise DataError(f"{path}: it cannot be read: {reason(error)}") from error
        with file:
            self._file = file
            try:
                yield file
            finally:
                self._before += path.stat().st_size
                self._read, self._file = self._before, None


@dataclass(frozen=True)
class Member:
    """A stream of bytes within a file: `name` is the file, or file!member; `inner` the name of the innermost file."""

    name: str
    inner: str
    stream: IO[bytes]


def members(path: Path, meter: Meter) -> Iterator[Member]:
    """The file itself, what it is compressed from, or the files of a zip in the order of their names."""
    with meter.opened(path) as file:
        start = file.read(4)
        file.seek(0)
        if start == b"PK\x03\x04" or start == b"PK\x05\x06":
            yield from _zip_members(path, file)
            return
        with _plain(path, file, start) as stream:
            yield Member(str(path), path.name, stream)


@contextmanager
def _plain(path: Path, file: IO[bytes], start: bytes) -> Iterator[IO[bytes]]:
    if start[:2] == b"\x1f\x8b":
        with gzip.GzipFile(fileobj=file) as stream:
            yield stream  # type: ignore[misc]
    elif start == b"\x28\xb5\x2f\xfd":
        yield _zstandard(path, file)
    elif start[:3] == b"BZh" or start == b"\xfd7zX" or start == b"7z\xbc\xaf" or start == b"Rar!":
        raise DataError(f"{path}: expected a plain, gzip, zip or Zstandard file, found another compression; decompress it first")
    else:
        yield file


def _zstandard(path: Path, file: IO[bytes]) -> IO[bytes]:
    try:
        from compression import zstd  # type: ignore[import-not-found]  # Python 3.14

        return zstd.ZstdFile(file)
    except ImportError:
        pass
    try:
        import zstandard  # type: ignore[import-not-found]
    except ImportError:
        raise UsageError(
            f"{path}: reading Zstandard needs Python 3.14 or the package 'zstandard'; install it, or decompress the file"
        ) from None
    return zstandard.ZstdDecompressor().stream_reader(file)


def _zip_members(path: Path, file: IO[bytes]) -> Iterator[Member]:
    try:
        archive = zipfile.ZipFile(file)
    except (*_DAMAGED, OSError, ValueError) as error:
        raise DataError(f"{path}: it cannot be read as a zip: {error}") from error
    with archive:
        infos = [info for info in archive.infolist() if _is_file(info.filename)]
        if not infos:
            raise DataError(f"{path}: the zip holds no files")
        for info in sorted(infos, key=lambda info: info.filename):
            shown = "".join(letter if letter.isprintable() else "?" for letter in info.filename)[:_SHOWN_NAME]
            name = f"{path}!{shown}"
            if info.flag_bits & 1:
                raise DataError(f"{name}: the member is encrypted; unpack it first")
            try:
                stream = archive.open(info)
            except (*_DAMAGED, OSError, ValueError) as error:
                raise DataError(f"{name}: it cannot be unpacked: {error}") from error
            with stream:
                yield Member(name, shown.rsplit("/", 1)[-1], stream)


def _is_file(name: str) -> bool:
    return bool(name) and not name.endswith("/") and not name.startswith("__MACOSX/")


def read_bytes(member: Member, size: int) -> bytes:
    """The next bytes of a member; a damaged archive is one line."""
    try:
        return member.stream.read(size)
    except _DAMAGED as error:
        raise DataError(f"{member.name}: the compressed file is damaged or ends early: {str(error) or type(error).__name__}") from error
    except OSError as error:
        raise DataError(f"{member.name}: it cannot be read: {error.strerror or error}") from error


@dataclass
class Block:
    """Whole lines of UTF-8, each with its line end but for the last of a file that has none. first_line: its number in the file, from 1."""

    data: bytes
    first_line: int


class Lines:
    """The lines of a text: some one by one from the top, the rest in blocks."""

    def __init__(self, member: Member, chunk_bytes: int) -> None:
        self.member = member
        self._size = max(chunk_bytes, LEAST_CHUNK)
        self._rest = b""
        self._done = False
        self._line = 1
        self._decoder: codecs.IncrementalDecoder | None = None
        self._begin()

    def peek(self) -> str | None:
        """The next line without its end, None at the end of the file."""
        end = self._rest.find(b"\n")
        while end < 0 and not self._done:
            at = len(self._rest)
            self._more(self._size)
            end = self._rest.find(b"\n", at)
        if end < 0 and not self._rest:
            return None
        return self._text(self._rest if end < 0 else self._rest[:end], self._line).rstrip("\r")

    def take(self) -> str | None:
        """The next line; it is used up."""
        line = self.peek()
        if line is not None:
            end = self._rest.find(b"\n")
            self._rest = b"" if end < 0 else self._rest[end + 1 :]
            self._line += 1
        return line

    def blocks(self) -> Iterator[Block]:
        """The lines that are left."""
        while True:
            while not self._done and (len(self._rest) < self._size or b"\n" not in self._rest):
                self._more(max(self._size - len(self._rest), LEAST_CHUNK))
            cut = (self._rest.rfind(b"\n", 0, self._size) + 1) or (self._rest.find(b"\n") + 1)
            if self._done and (len(self._rest) <= self._size or not cut):
                if self._rest:
                    yield self._block(self._rest)
                return
            data, self._rest = self._rest[:cut], self._rest[cut:]
            yield self._block(data)

    @property
    def line(self) -> int:
        """The number of the next line, from 1."""
        return self._line

    def _block(self, data: bytes) -> Block:
        if not data.isascii():
            self._text(data, self._line)
        block = Block(data, self._line)
        self._line += data.count(b"\n")
        return block

    def _text(self, data: bytes, line: int) -> str:
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            line += data.count(b"\n", 0, error.start)
            raise DataError(
                f"{self.member.name}: line {line}: it cannot be read as UTF-8 text: byte {data[error.start]:#04x}; save the file as UTF-8"
            ) from error

    def _begin(self) -> None:
        start = read_bytes(self.member, min(self._size, HEAD_BYTES))
        for mark, name in _BOMS:
            if start.startswith(mark):
                start = start[len(mark) :]
                if name != "utf-8":
                    self._decoder = codecs.getincrementaldecoder(name)()
                break
        else:
            if b"\0" in start:
                raise DataError(
                    f"{self.member.name}: expected text, found bytes of another kind of file (or UTF-16 without a byte-order mark)"
                )
        self._add(start, final=not start)
        if not start:
            self._done = True
        if self._rest and b"\n" not in self._rest and self._rest.count(b"\r") > 1:
            raise DataError(f"{self.member.name}: the lines end with a carriage return alone; save it with line feeds")

    def _more(self, size: int) -> None:
        data = read_bytes(self.member, size)
        if not data:
            self._done = True
        self._add(data, final=not data)
        if len(self._rest) > LONGEST_LINE and b"\n" not in self._rest:
            raise DataError(
                f"{self.member.name}: line {self._line}: expected a line end within {LONGEST_LINE} bytes, found none; is it text?"
            )

    def _add(self, data: bytes, final: bool) -> None:
        if self._decoder is None:
            self._rest = self._rest + data if self._rest else data
            return
        try:
            self._rest += self._decoder.decode(data, final).encode("utf-8")
        except UnicodeError as error:
            raise DataError(f"{self.member.name}: it cannot be read as UTF-16 text after line {self._line}: {error}") from error


@dataclass(frozen=True)
class Head:
    """The beginning of a file (of the first member of a zip), by which a layout is recognised. names: of all members."""

    path: Path
    names: tuple[str, ...]
    data: bytes
    zipped: bool

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The first whole lines as text; none where it is no text."""
        text = self.data
        for mark, name in _BOMS:
            if text.startswith(mark):
                text = text[len(mark) :].decode(name, "replace").encode("utf-8")
                break
        if b"\0" in text:
            return ()
        found = text.decode("utf-8", "replace").split("\n")
        whole = found if len(self.data) < HEAD_BYTES else found[:-1]
        return tuple(line.rstrip("\r") for line in whole[:50])

    def fields(self, line: int, separator: str) -> list[str]:
        """The cells of a line, folded as names of columns are."""
        if line >= len(self.lines):
            return []
        return [cell.strip().strip('"').strip().casefold() for cell in self.lines[line].split(separator)]


def head(path: Path) -> Head:
    """The beginning of a file; a damaged archive has an empty one."""
    names: list[str] = []
    data = b""
    compressed = False
    try:
        with path.open("rb") as file:
            compressed = file.read(4).startswith(b"PK\x03\x04")
        meter = Meter(path.stat().st_size)
        if compressed:
            with zipfile.ZipFile(path) as archive:
                names = sorted(info.filename for info in archive.infolist() if _is_file(info.filename))[:1000]
        for member in members(path, meter):
            data = read_bytes(member, HEAD_BYTES)
            break
    except OSError as error:
        raise DataError(f"{path}: it cannot be read: {reason(error)}") from error
    except (DataError, UsageError, ValueError, *_DAMAGED):
        pass
    return Head(path, tuple(names) or (path.name,), data, compressed)


@contextmanager
def no_panic(where: str) -> Iterator[None]:
    """Turns the panic of a library written in Rust, which is no Exception in Python, into one line; damaged files cause it."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise DataError(f"{where}: the file is damaged: {describe(str(error))}") from None


def describe(value: Any) -> str:
    """A cell for an error, cut where it is long."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "...'"
