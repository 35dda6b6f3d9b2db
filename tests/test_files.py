"""Files: whole or not at all, JSON of one spelling without NaN, names for every file system, private caches."""

import math
import os
import stat
from pathlib import Path

import numpy as np
import pytest

from bellmark import files
from bellmark.errors import InternalError, RunError


def test_write_replaces_the_whole_file_and_leaves_nothing_beside(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old and longer")
    files.write_atomically(path, "né\n")
    assert path.read_bytes() == "né\n".encode()
    assert os.listdir(tmp_path) == ["a.txt"]


def test_failed_write_keeps_the_old_file_and_is_one_line(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(RunError, match=r"a\.txt: it cannot be written: no space left on device$"):
        files.write_atomically(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["a.txt"]


def test_write_into_a_missing_folder_is_one_line(tmp_path):
    with pytest.raises(RunError, match="no such file or directory"):
        files.write_atomically(tmp_path / "none" / "a.txt", "x")


def test_append_ends_a_line_that_a_crash_cut_short(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a":1}\n{"a":')
    files.append_lines(path, ['{"a":3}'])
    assert path.read_text().splitlines() == ['{"a":1}', '{"a":', '{"a":3}']


def test_json_is_sorted_and_takes_numpy():
    document = {"b": np.float32(0.5), "a": np.arange(2), "c": Path("x"), "d": (1, None), "é": True}
    assert files.json_line(document) == '{"a":[0,1],"b":0.5,"c":"x","d":[1,null],"é":true}'
    assert files.json_text({"b": 1, "a": 2}) == '{\n  "a": 2,\n  "b": 1\n}\n'


@pytest.mark.parametrize("value", [math.nan, math.inf, np.float32("nan"), np.array([1.0, np.nan])])
def test_json_refuses_what_is_not_finite_and_names_the_place(value):
    with pytest.raises(InternalError, match=r"at rows\.1\.loss"):
        files.json_line({"rows": [{"loss": 1.0}, {"loss": value}]})


def test_json_of_a_newer_version_is_refused_in_one_line(tmp_path):
    path = tmp_path / "m.json"
    path.write_text('{"schema_version": 99}')
    with pytest.raises(RunError, match=r"m\.json: this Bellmark reads schema_version up to 1, found 99"):
        files.read_json(path)


@pytest.mark.parametrize(("text", "found"), [("{", "expected JSON"), ("[1]", "expected a JSON object, found list")])
def test_damaged_json_is_one_line(tmp_path, text, found):
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(RunError, match=found):
        files.read_json(path)


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("ES=F", "ES-F"),
        ("mean/rev: v2?", "mean-rev-v2"),
        ("20240501T143005Z", "20240501T143005Z"),
        ("CON", "CON_"),
        ("com1.txt", "com1_.txt"),
        ("lpt¹", "lpt¹_"),
        ("console", "console"),
        ("tail. . ", "tail"),
        (".hidden", "hidden"),
        ("a\x00b\nc", "a-b-c"),
        ("運行 1", "運行-1"),
        ("Zoe\u0308", "Zo\u00eb"),
        ('<>:"/\\|?*', "unnamed"),
        ("", "unnamed"),
    ],
)
def test_safe_name(name, safe):
    assert files.safe_name(name) == safe


def test_safe_name_is_short_enough_for_a_file_system_and_stays_whole_letters():
    name = files.safe_name("é" * 300)
    assert len(name.encode()) <= 120
    assert set(name) == {"é"}


def test_cache_folder_is_private(tmp_path, monkeypatch):
    monkeypatch.setenv("BELLMARK_CACHE_DIR", str(tmp_path / "cache"))
    folder = files.cache_folder("code")
    assert folder == tmp_path / "cache" / "code"
    if os.name == "posix":
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_cache_that_others_may_write_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setenv("BELLMARK_CACHE_DIR", str(tmp_path / "open"))
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    folder = files.cache_folder("code")
    assert tmp_path not in folder.parents
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "open").stat().st_mode) == 0o777


def test_cache_that_cannot_be_made_is_replaced_by_a_temporary_one(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BELLMARK_CACHE_DIR", str(tmp_path / "file" / "cache"))
    folder = files.cache_folder("code")
    assert folder.is_dir()
    assert tmp_path not in folder.parents


def test_cache_root_follows_xdg_only_if_absolute(monkeypatch):
    monkeypatch.delenv("BELLMARK_CACHE_DIR", raising=False)
    monkeypatch.setattr(files.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/x/cache")
    assert files.cache_root() == Path("/x/cache/bellmark")
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    assert files.cache_root() == Path.home() / ".cache" / "bellmark"
