"""Run folders: whole or absent, never overwritten; checkpoints survive damage and kills; bytes are a function of the inputs."""

import json
import os
import re
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from bellmark import checkpoints
from bellmark.errors import InternalError, RunError, UsageError
from bellmark.run import Run, find_run, latest_run, manifest_of, run_names


@pytest.fixture
def run(tmp_path, small_profile):
    return Run.create(tmp_path / "runs", None, small_profile)


def arrays(seed=0):
    rng = np.random.default_rng(seed)
    return {
        "weights": rng.random((3, 4), dtype=np.float32),
        "priorities": rng.integers(0, 2**40, 5, dtype=np.uint64),
        "flags": np.array([0, 1], np.uint8),
        "steps": np.array(7, np.int64),
        "empty": np.zeros((0, 2), np.float32),
    }


def test_counted_names_and_never_an_overwrite(tmp_path, small_profile):
    folder = tmp_path / "runs"
    names = [Run.create(folder, None, small_profile).name for _ in range(3)]
    assert names == ["small-1", "small-2", "small-3"]
    Run.create(folder, "mine: v2?", small_profile)
    before = (folder / "mine-v2" / "profile.toml").read_bytes()
    with pytest.raises(RunError, match=r"mine-v2: a run of this name exists: take another --name, or go on with it by --resume"):
        Run.create(folder, "mine: v2?", small_profile)
    assert (folder / "mine-v2" / "profile.toml").read_bytes() == before
    assert run_names(folder) == ["mine-v2", "small-1", "small-2", "small-3"]
    assert latest_run(folder, "small").name == "small-3"
    assert [name for name in os.listdir(folder) if name.startswith(".")] == []


def test_run_names_count_as_people_do(tmp_path, small_profile):
    for _ in range(11):
        Run.create(tmp_path, None, small_profile)
    assert run_names(tmp_path)[-2:] == ["small-10", "small-11"]


def test_open_and_find_say_what_is_there(run):
    assert Run.open(run.path) == find_run("small-1", run.path.parent) == find_run(str(run.path), "elsewhere")
    with pytest.raises(RunError, match=r"smal-1: no such run; did you mean 'small-1'\? \(have: small-1\)"):
        find_run("smal-1", run.path.parent)
    (run.path.parent / "notes").mkdir()
    with pytest.raises(RunError, match="expected a run folder with profile.toml"):
        find_run("notes", run.path.parent)
    with pytest.raises(RunError, match="there is no run of profile 'other' to resume"):
        latest_run(run.path.parent, "other")


def test_the_profile_of_a_run_is_the_one_it_was_made_with(run, small_profile, small_host, monkeypatch):
    from bellmark import host as host_module

    monkeypatch.setenv("BELLMARK__TRAINER__BATCH", "999")
    monkeypatch.setattr(host_module, "host", lambda: small_host)
    assert run.profile.hash == small_profile.hash
    assert run.profile.name == "small"


def test_manifest_says_versions_plugins_seeds_and_no_clock_or_path(run, small_profile, small_host):
    manifest = manifest_of(small_profile, small_host, data_hash="abc", build={"blas": "x"})
    run.write_manifest(manifest)
    text = (run.path / "manifest.json").read_text()
    assert run.manifest["seeds"] == [1, 2, 3, 4]
    assert {"python", "numpy", "numba", "bellmark"} <= set(run.manifest["versions"])
    used = {plugin["place"]: (plugin["kind"], plugin["name"], plugin["plugin"]) for plugin in run.manifest["plugins"]}
    assert used["features.return_1"] == ("feature", "log_return", "small")
    assert str(run.path) not in text and not re.search(r"20\d\d-\d\d-\d\dT|\d\d:\d\d:\d\d", text)
    run.write_manifest(manifest)
    assert (run.path / "manifest.json").read_text() == text


def test_metric_rows_are_kept_truncated_and_never_nan(run):
    for epoch in (1, 2, 3):
        run.write_metric_rows([{"epoch": epoch, "learner": learner, "loss": np.float32(0.5), "sharpe": None} for learner in (0, 1)])
    assert len(run.metric_rows()) == 6
    run.truncate_metrics(2)
    assert [row["epoch"] for row in run.metric_rows()] == [1, 1, 2, 2]
    with pytest.raises(InternalError, match="NaN"):
        run.write_metric_rows([{"epoch": 3, "loss": float("nan")}])
    assert len(run.metric_rows()) == 4


def test_a_row_cut_short_by_a_kill_is_dropped_and_one_in_the_middle_is_an_error(run):
    path = run.path / "metrics.jsonl"
    path.write_text('{"epoch":1,"schema_version":1}\n{"epoch":2,"sche')
    assert [row["epoch"] for row in run.metric_rows()] == [1]
    run.truncate_metrics(1)
    assert path.read_text() == '{"epoch":1,"schema_version":1}\n'
    path.write_text('{"epoch":1}\n{"ep\n{"epoch":2}\n')
    with pytest.raises(RunError, match=r"metrics\.jsonl:2: expected one JSON object a line"):
        run.metric_rows()


def test_rows_of_a_newer_version_are_refused(run):
    (run.path / "metrics.jsonl").write_text('{"epoch":1,"schema_version":9}\n')
    with pytest.raises(RunError, match=r"metrics\.jsonl:1: this Bellmark reads schema_version up to 1, found 9"):
        run.metric_rows()


def test_checkpoint_gives_back_every_bit_and_the_metadata(run):
    saved = arrays()
    saved["fortran"] = np.asfortranarray(saved["weights"])
    run.save_checkpoint(500, saved, {"epoch": 2, "profile_hash": "x", "nested": {"a": [1, None]}})
    loaded = run.load_checkpoint()
    assert loaded.step == 500
    assert loaded.metadata["epoch"] == 2 and loaded.metadata["nested"] == {"a": [1, None]}
    assert loaded.arrays.keys() == saved.keys()
    for name, array in saved.items():
        assert loaded.arrays[name].dtype == array.dtype and loaded.arrays[name].shape == array.shape
        assert loaded.arrays[name].tobytes() == np.ascontiguousarray(array).tobytes()


def test_last_two_checkpoints_are_kept(run):
    for step in (1, 2, 3, 4):
        run.save_checkpoint(step, arrays(step), {"epoch": step})
    names = sorted(os.listdir(run.checkpoint_folder))
    assert names == ["index.json", "step-0000000003.safetensors", "step-0000000004.safetensors"]
    assert run.checkpoint_step == 4


def test_saving_an_earlier_step_after_a_resume_replaces_the_later_ones(run):
    for step in (1, 2, 3):
        run.save_checkpoint(step, arrays(step), {"epoch": step})
    run.save_checkpoint(2, arrays(9), {"epoch": 2})
    assert run.checkpoint_step == 2
    assert run.load_checkpoint().arrays["weights"].tobytes() == arrays(9)["weights"].tobytes()


@pytest.mark.parametrize("damage", ["cut", "flipped", "gone"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before_with_a_warning(run, damage):
    run.save_checkpoint(1, arrays(1), {"epoch": 1})
    path = run.save_checkpoint(2, arrays(2), {"epoch": 2})
    content = bytearray(path.read_bytes())
    if damage == "cut":
        path.write_bytes(content[:-1])
    elif damage == "flipped":
        content[-1] ^= 1
        path.write_bytes(content)
    else:
        path.unlink()
    warnings = []
    assert run.load_checkpoint(warnings.append).step == 1
    assert len(warnings) == 1 and "step-0000000002.safetensors" in warnings[0] and "using step-0000000001" in warnings[0]


def test_no_whole_checkpoint_is_one_line(run):
    with pytest.raises(RunError, match="there is no checkpoint"):
        run.load_checkpoint()
    assert not run.has_checkpoint
    run.save_checkpoint(1, arrays(1), {"epoch": 1}).write_bytes(b"")
    with pytest.raises(RunError, match=r"expected \d+ bytes, found 0; no whole checkpoint is left"):
        run.load_checkpoint()


def test_a_write_that_fails_keeps_the_checkpoint_before(run, monkeypatch):
    run.save_checkpoint(1, arrays(1), {"epoch": 1})

    def full(path, data):
        raise RunError(f"{path}: it cannot be written: no space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(checkpoints, "write_atomically", full)
        with pytest.raises(RunError, match="no space left"):
            run.save_checkpoint(2, arrays(2), {"epoch": 2})
    assert run.load_checkpoint().step == 1


def test_a_checkpoint_of_a_newer_version_is_refused(run, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(checkpoints, "SCHEMA_VERSION", 9)
        run.save_checkpoint(1, arrays(1), {"epoch": 1})
    with pytest.raises(RunError, match="a newer one wrote it"):
        run.load_checkpoint()


def test_checkpoint_bytes_are_the_same_in_every_process(tmp_path):
    code = """
        import sys, numpy as np
        from pathlib import Path
        from bellmark.checkpoints import save
        made = {f"a{i}": np.arange(i + 1, dtype=np.float32) for i in range(9)}
        save(Path(sys.argv[1]), 3, made, {f"k{i}": i for i in range(9)})
    """
    found = set()
    for number in range(3):
        folder = tmp_path / str(number)
        surroundings = {**os.environ, "PYTHONHASHSEED": str(number)}
        subprocess.run([sys.executable, "-c", textwrap.dedent(code), str(folder)], check=True, env=surroundings)
        found.add((folder / "step-0000000003.safetensors").read_bytes())
    assert len(found) == 1


def test_a_kill_while_writing_leaves_the_last_whole_checkpoint(run):
    run.save_checkpoint(1, arrays(1), {"epoch": 1})
    (run.checkpoint_folder / "step-0000000002.safetensors").write_bytes(b"half")  # renamed, but the index does not name it yet
    (run.checkpoint_folder / ".step-0000000003.safetensors.1.tmp").write_bytes(b"half")
    assert run.load_checkpoint().step == 1
    run.save_checkpoint(4, arrays(4), {"epoch": 4})
    files = sorted(os.listdir(run.checkpoint_folder))
    assert files == ["index.json", "step-0000000001.safetensors", "step-0000000004.safetensors"]


def test_one_writer_at_a_time_and_a_killed_one_frees_the_run(run):
    code = f"""
        import os, signal
        from pathlib import Path
        from bellmark.run import Run
        with Run(Path({str(run.path)!r})).lock():
            print("held", flush=True)
            input()
    """
    child = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "held\n"
    with pytest.raises(RunError, match="another process is writing this run"), run.lock():
        pass
    child.kill()
    child.communicate()
    with run.lock():
        pass


def test_backtest_numbers_are_kept_beside_the_run(run):
    path = run.write_backtest("test", {"a": 1})
    assert json.loads(path.read_text()) == {"schema_version": 1, "a": 1}
    assert path == run.path / "backtests" / "test.json"


@pytest.mark.parametrize("name", ["", " ", ".", "..", "///", ":?"])
def test_a_name_without_a_letter_is_refused(tmp_path, small_profile, name):
    with pytest.raises(UsageError, match="--name: expected a name with letters or digits"):
        Run.create(tmp_path / "runs", name, small_profile)
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_folder_of_the_same_name_that_is_no_run_does_not_hide_the_run(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small-1").mkdir()
    assert find_run("small-1", run.path.parent) == run
    monkeypatch.chdir(run.path.parent)
    assert find_run("small-1", "elsewhere").path.samefile(run.path)


def test_an_unknown_run_is_a_wrong_name_and_exits_with_2(run):
    with pytest.raises(RunError, match="no such run") as error:
        find_run("other", run.path.parent)
    assert error.value.exit_code == 2


@pytest.mark.parametrize("row", ["3", "[1]", "{}", '{"epoch":"1"}'])
def test_a_line_that_is_no_row_is_named(run, row):
    (run.path / "metrics.jsonl").write_text(f'{{"epoch":1}}\n{row}\n')
    with pytest.raises(RunError, match=r"metrics\.jsonl:2: expected one JSON object a line with its epoch"):
        run.metric_rows()


@pytest.mark.parametrize("content", [b"junk", b"\x10\0\0\0\0\0\0\0{}              ", b"\xff" * 40])
def test_a_foreign_file_with_the_right_hash_is_no_checkpoint(run, content):
    path = run.save_checkpoint(1, arrays(1), {"epoch": 1})
    path.write_bytes(content)
    index = json.loads((run.checkpoint_folder / "index.json").read_text())
    index["checkpoints"][0] |= {"bytes": len(content), "sha256": checkpoints.sha256_of(content)}
    (run.checkpoint_folder / "index.json").write_text(json.dumps(index))
    with pytest.raises(RunError, match=r"step-0000000001\.safetensors: expected a checkpoint of Bellmark, found something else"):
        run.load_checkpoint()


@pytest.mark.parametrize("change", [{"file": None}, {"file": "../x"}, {"step": "1"}, {"bytes": None}, {"sha256": 3}])
def test_an_entry_of_the_index_that_is_not_one_is_refused(run, change):
    run.save_checkpoint(1, arrays(1), {"epoch": 1})
    path = run.checkpoint_folder / "index.json"
    index = json.loads(path.read_text())
    index["checkpoints"][0] |= change
    path.write_text(json.dumps(index))
    for read in (run.load_checkpoint, lambda: run.has_checkpoint):
        with pytest.raises(RunError, match=r"index\.json: expected a list of checkpoints, each with file, step, bytes and sha256"):
            read()


def test_checkpoints_without_their_index_are_not_taken_for_none(run):
    for step in (1, 2):
        run.save_checkpoint(step, arrays(step), {"epoch": step})
    (run.checkpoint_folder / "index.json").unlink()
    for touch in (lambda: run.has_checkpoint, lambda: run.save_checkpoint(3, arrays(3), {"epoch": 3})):
        with pytest.raises(RunError, match=r"index\.json: expected the list of checkpoints, found none beside step-0000000001"):
            touch()
    assert len(list(run.checkpoint_folder.glob("step-000000000[12].safetensors"))) == 2


def test_what_a_killed_write_left_goes_with_the_next_resume(run):
    (run.path / ".metrics.jsonl.445.tmp").write_text("x")
    run.truncate_metrics(0)
    assert not list(run.path.glob(".*.tmp"))
