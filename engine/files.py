"""Files that are never half written, private cache folders, names that every file system takes, and JSON with one spelling."""

from __future__ import annotations

import atexit
import hashlib
import json
import math
import os
import re
import shutil
import stat
import sys
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from bellmark.errors import InternalError, RunError

SCHEMA_VERSION = 1
OWN_FILES = ("profile.toml", "manifest.json", "metrics.jsonl", "timing.jsonl", "checkpoints", "backtests", ".lock")
"""What a run keeps in its folder: nobody else writes there."""
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])", re.IGNORECASE)
_LONGEST_NAME_BYTES = 120


def write_atomically(path: Path | str, data: str | bytes) -> None:
    """Writes a whole file: beside it under another name, flushed to disk, then renamed over it.

    Text is written as UTF-8 with the line ends it has. Whatever fails, the old file stays as it was and no part of the new one is left;
    the failure is one line (RunError).
    """
    with _replacing(Path(path)) as stream:
        stream.write(data.encode("utf-8") if isinstance(data, str) else data)


def write_lines(path: Path | str, lines: Iterable[str]) -> None:
    """Writes a text file line by line under the same promise as `write_atomically`; the lines are never all in memory."""
    with _replacing(Path(path)) as stream:
        for line in lines:
            stream.write(line.encode("utf-8") + b"\n")


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    """A stream whose content takes the place of the file once it is whole."""
    beside = path.with_name(f".{path.name[:80]}.{os.getpid()}.tmp")
    try:
        handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0), 0o666)
        try:
            with os.fdopen(handle, "wb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(beside, path)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise RunError(f"{path}: it cannot be written: {reason(error)}") from error
    _sync_folder(path.parent)


def append_lines(path: Path | str, lines: Iterable[str]) -> None:
    """Adds whole lines to a text file and flushes them to disk. A line cut short by a crash before is first ended."""
    path = Path(path)
    text = "".join(line + "\n" for line in lines)
    try:
        with open(path, "a+b") as stream:
            if stream.tell() > 0:
                stream.seek(-1, os.SEEK_END)
                if stream.read(1) != b"\n":
                    text = "\n" + text
            stream.write(text.encode("utf-8"))
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise RunError(f"{path}: it cannot be written: {reason(error)}") from error


def make_folder(path: Path | str) -> Path:
    """Makes a folder with its parents, if it is not there."""
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"{path}: the folder cannot be made: {reason(error)}") from error
    return path


def new_folder(parent: Path | str, name: str) -> Path:
    """Makes the folder NAME-1, NAME-2, ... that is not there yet."""
    parent, number = make_folder(parent), 1
    while True:
        path = parent / f"{name}-{number}"
        try:
            path.mkdir()
            return path
        except FileExistsError:
            number += 1
        except OSError as error:
            raise RunError(f"{path}: the folder cannot be made: {reason(error)}") from error


def reason(error: OSError) -> str:
    """Why the system refused, in its own words."""
    return (error.strerror or type(error).__name__).lower()


def sha256_of(data: bytes | str) -> str:
    """The SHA-256 of bytes or of text as UTF-8, in hexadecimal."""
    return hashlib.sha256(data.encode("utf-8") if isinstance(data, str) else data).hexdigest()


def json_text(document: Any) -> str:
    """A document as JSON for people: sorted keys, two spaces, one ending newline; the same bytes for the same values.

    NumPy scalars and arrays, paths, tuples and sets are taken. NaN and infinities are refused (InternalError): they are not JSON, and an
    undefined number is None with a reason.
    """
    return _dump(document, indent=2) + "\n"


def json_line(document: Any) -> str:
    """A document as one line of JSON, without its newline; the same rules as `json_text`."""
    return _dump(document, separators=(",", ":"))


def write_json(path: Path | str, document: Any) -> None:
    """Writes a document as a JSON file, atomically."""
    write_atomically(path, json_text(document))


def _dump(document: Any, **how: Any) -> str:
    try:
        return json.dumps(document, sort_keys=True, allow_nan=False, ensure_ascii=False, default=_plain, **how)
    except ValueError as error:
        place = _not_finite(document, "") or "(unknown place)"
        raise InternalError(f"JSON: expected finite numbers or null, found NaN or an infinity at {place}") from error
    except TypeError as error:
        raise InternalError(f"JSON: {error}") from error


def _plain(value: Any) -> Any:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, set | frozenset):
        return sorted(value)
    if hasattr(value, "tolist"):  # NumPy scalars and arrays, without importing NumPy here
        return value.tolist()
    raise TypeError(f"expected a plain value, found {type(value).__name__}")


def _not_finite(value: Any, place: str) -> str:
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float) and not math.isfinite(value):
        return place or "(top)"
    pairs: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list | tuple):
        pairs = enumerate(value)
    return next((found for key, item in pairs if (found := _not_finite(item, f"{place}.{key}".lstrip(".")))), "")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON file with `schema_version`; one that a newer Bellmark wrote, or that is damaged, is one line."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise RunError(f"{path}: it cannot be read: {reason(error)}") from error
    except ValueError as error:
        raise RunError(f"{path}: expected JSON, found something else: {error}") from error
    check_version(document, str(path))
    found: dict[str, Any] = document
    return found


def check_version(document: Any, where: str) -> None:
    """Refuses what a newer Bellmark wrote, and what is no JSON object."""
    if not isinstance(document, Mapping):
        raise RunError(f"{where}: expected a JSON object, found {type(document).__name__}")
    version = document.get("schema_version", 0)
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise RunError(f"{where}: this Bellmark reads schema_version up to {SCHEMA_VERSION}, found {version!r}: a newer one wrote it")


def safe_name(name: str) -> str:
    """A name for a file or folder that every common file system takes: `mean/rev: v2?` becomes `mean-rev-v2`.

    Letters and digits of any script, `_`, `.` and `-` stay; each run of other characters becomes one `-`. No leading or trailing dot,
    dash or space; a device name of Windows (CON, NUL, COM1 ...) gets an underscore; at most 120 bytes.
    """
    text = unicodedata.normalize("NFC", name)
    text = "".join(letter if letter.isalnum() or letter in "_.-" else " " for letter in text)
    text = re.sub(r"[ -]+", "-", text).strip("-. ")
    while len(text.encode("utf-8")) > _LONGEST_NAME_BYTES:
        text = text[:-1].rstrip("-. ")
    stem, dot, rest = text.partition(".")
    if _RESERVED.fullmatch(stem):
        text = f"{stem}_{dot}{rest}"
    return text or "unnamed"


def cache_root() -> Path:
    """The cache folder by choice or custom of the platform: $BELLMARK_CACHE_DIR, else $XDG_CACHE_HOME/bellmark and its like."""
    chosen = os.environ.get("BELLMARK_CACHE_DIR")
    if chosen:
        return Path(chosen).expanduser().absolute()
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return (Path(local) if local else Path.home() / "AppData" / "Local") / "bellmark" / "cache"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "bellmark"
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(xdg) if os.path.isabs(xdg) else Path.home() / ".cache") / "bellmark"


def cache_folder(kind: str) -> Path:
    """The folder of one kind of cached file (`code`, `tapes`), private to the user (mode 0700).

    Cached code is run, so a folder that another user owns or may write to is not used; neither is one that cannot be written. Then a
    private temporary folder takes its place, which goes when the process ends.
    """
    try:
        root = cache_root()
    except RuntimeError:  # no home folder
        return _made(_temporary_cache() / kind)
    return _usable(root, kind) or _made(_temporary_cache() / kind)


def _usable(root: Path, kind: str) -> Path | None:
    folder = root / kind
    try:
        for path in (root, folder):
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not _is_private(path):
                return None
        if os.name == "posix" and stat.S_IMODE(folder.stat().st_mode) != 0o700:
            folder.chmod(0o700)
    except OSError:
        return None
    return folder if os.access(folder, os.W_OK | os.X_OK) else None


def _is_private(path: Path) -> bool:
    if os.name != "posix":
        return path.is_dir()
    info = path.stat()
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid() and not info.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _made(path: Path) -> Path:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    return path


@lru_cache(maxsize=1)
def _temporary_cache() -> Path:
    path = Path(tempfile.mkdtemp(prefix="bellmark-"))
    atexit.register(shutil.rmtree, path, ignore_errors=True)
    return path


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":
        return
    try:  # the rename itself must survive a power cut; some file systems cannot sync a folder
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)
