"""Bad input through the API, as a user meets it: one clear line, and nothing that existed before is lost."""

import shutil
from typing import ClassVar

import pytest

import bellmark
from bellmark.component import Dataset, Reward, component, make, setting
from bellmark.describe import describe_dataset
from bellmark.errors import DataError, PluginError, RunError, UnknownNameError, UsageError
from bellmark.hookspecs import hookimpl
from bellmark.host import Host
from bellmark.market_data import read_bars

pytestmark = pytest.mark.cpu
BARS = "ts,open,high,low,close,volume\n2024-03-04T14:30:00Z,100,101,99,100,1\n2024-03-04T14:31:00Z,100,101,99,100.3,1\n"


def files_of(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name != ".lock"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return bellmark.train("smoke", runs=tmp_path_factory.mktemp("runs"))


@pytest.fixture
def copied(trained, tmp_path):
    shutil.copytree(trained.path, tmp_path / "smoke-1")
    return tmp_path


@pytest.mark.parametrize(
    ("sets", "error", "message"),
    [
        (["trainer.batch=9223372036854775807"], UsageError, "memory: the run needs"),
        (["replay.capacity=1000000000000000"], UsageError, "replay.capacity: expected int >= 1 <="),
        (["network.hidden=[1000000000]"], UsageError, "memory: the run needs .* the largest buffer is"),
        (["environment.lanes=1000000000"], UsageError, r"replay.capacity: expected at least"),
        (["market.flat_by_close=true"], UsageError, "market.flat_by_close"),
        (["market.spread_ticks=1e9", "instrument.contract_multiplier=1e9"], UsageError, "leaves"),
        (["split.train=9998-01-01", "split.validation=9999-01-01"], UsageError, "split.train: expected a date between 1678 and 2261"),
        (["trackers.jsonl.file=metrics.jsonl"], UsageError, "belongs to the run itself"),
    ],
)
def test_a_run_that_fails_before_its_first_update_leaves_its_name_free(tmp_path, sets, error, message):
    with pytest.raises(error, match=message):
        bellmark.train("smoke", sets=sets, name="mine", runs=tmp_path)
    assert not (tmp_path / "mine").exists()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda run: (run / "manifest.json").unlink(), "manifest.json: it is gone"),
        (lambda run: (run / "checkpoints" / "index.json").unlink(), "expected the list of checkpoints, found none beside"),
        (lambda run: (run / "metrics.jsonl").unlink(), "metrics.jsonl: expected a row for each of 2 learners .*, found 0 rows"),
        (lambda run: (run / "metrics.jsonl").write_bytes((run / "metrics.jsonl").read_bytes()[:-30]), "metrics.jsonl: .*, found 3 rows"),
    ],
)
def test_a_damaged_run_is_not_resumed_over(copied, damage, message):
    damage(copied / "smoke-1")
    before = files_of(copied / "smoke-1")
    with pytest.raises(RunError, match=message):
        bellmark.train("smoke", runs=copied, resume=True)
    assert files_of(copied / "smoke-1") == before


def test_a_backtest_with_the_checkpoint_of_another_network_is_one_line(copied):
    other = bellmark.train("smoke", sets=["network.hidden=[4]"], name="other", runs=copied)
    shutil.rmtree(copied / "smoke-1" / "checkpoints")
    shutil.copytree(other.checkpoint_folder, copied / "smoke-1" / "checkpoints")
    with pytest.raises(RunError, match=r"buffer 'parameter_best_LP': expected \(2, \d+\), found \(2, \d+\)"):
        bellmark.backtest("smoke-1", runs=copied)


def test_a_resume_takes_the_name_as_the_training_took_it(copied):
    (copied / "smoke-1").rename(copied / "a-b")
    assert bellmark.train("smoke", name="a:b", runs=copied, resume=True).name == "a-b"


@pytest.mark.parametrize("place", ["read", "give"])
def test_a_dataset_that_raises_or_gives_something_else_is_named(place):
    @component
    class Odd(Dataset):
        """Fails."""

        name: ClassVar[str] = "odd"
        gives: bool = setting(False, "whether it gives junk")

        def read(self):
            if self.gives:
                return [1, 2]
            raise SystemExit(0)

    message = "raised SystemExit: 0" if place == "read" else r"expected a list of \(Bars, Instrument\), found in it int 1"
    with pytest.raises(PluginError, match=f"dataset 'odd'.*read.* ?{message}"):
        read_bars(Odd(gives=place == "give"))


def test_settings_whose_own_check_raises_are_one_line():
    @component
    class Odd(Reward):
        """Fails."""

        name: ClassVar[str] = "odd"

        def __post_init__(self):
            raise KeyError("x")

    with pytest.raises(PluginError, match="rewards.odd: reward 'odd': its checks raised KeyError"):
        make(Odd, {}, "rewards.odd")


def test_a_plugin_that_did_not_load_is_named_where_its_component_is_missing():
    class Broken:
        @staticmethod
        @hookimpl
        def bellmark_rewards():
            raise SystemExit(0)

    host = Host()
    assert host.register(Broken, "mine").status == "failed"
    with pytest.raises(UnknownNameError, match="'zzz'.*plugin 'mine' did not load: hook bellmark_rewards raised SystemExit: 0"):
        host.get("reward", "zzz")


def test_a_dataset_is_shown_with_what_was_found_and_only_if_it_can_be_compiled(tmp_path):
    path = tmp_path / "bars.csv"
    path.write_text(BARS + BARS.splitlines()[2] + "\n")
    sets = [f"path={path}", "stamp=close", "zone=UTC", "symbol=X"]
    (row,) = describe_dataset("csv", sets)
    assert (row["bars"], row["identical_duplicates"], row["gaps"]) == (2, 1, 0)
    with pytest.raises(DataError, match="X: data row 2 .*100.3"):
        describe_dataset("csv", [*sets, "tick_size=0.25"])
    with pytest.raises(UsageError, match="--set: path.x: 'path' has a value of its own already"):
        describe_dataset("csv", [*sets, "path.x=3"])
