"""Groups of tests (none, cpu, gpu), material that may be absent, and a small host for tests that need no built-in."""

import os
from pathlib import Path
from typing import ClassVar

import pytest

from bellmark.component import Dataset, Execution, Feature, Loss, Reward, Sizing, Trainer, component, setting
from bellmark.hookspecs import hookimpl
from bellmark.host import Host

ROOT = Path(__file__).parents[1]
GROUPS = ("none", "cpu", "gpu")


def pytest_addoption(parser):
    parser.addoption("--golden", metavar="DIR", help="folder laid out like the golden material: every case found in it is a test")


def pytest_collection_modifyitems(items):
    for item in items:
        if not any(item.get_closest_marker(group) for group in GROUPS):
            item.add_marker("gpu" if ROOT / "tests" / "gpu" in item.path.parents else "none")
        if item.get_closest_marker("gpu") and not Path("/dev/nvidiactl").exists():
            item.add_marker(pytest.mark.skip(reason="needs a GPU; there is none on this machine"))


@pytest.fixture(scope="session")
def shared():
    """The folder of given material beside the repository; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("BELLMARK_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"needs the material in {folder}, which is not part of the repository")
    return folder


@component
class SmallData(Dataset):
    """A dataset without bars."""

    name: ClassVar[str] = "sample"
    symbols: tuple[str, ...] = setting(("AAPL",), "symbols")
    columns: dict[str, str] | None = setting(None, "names of columns")
    path: str | None = setting(None, "file")


@component
class SmallFeature(Feature):
    """A feature without a function."""

    name: ClassVar[str] = "log_return"
    window: int = setting(1, "bars", ge=1)


@component
class SmallReward(Reward):
    """A reward without a function."""

    name: ClassVar[str] = "log_equity"
    scale: float = setting(1.0, "scale", gt=0.0)


@component
class SmallSizing(Sizing):
    """A sizing without a function."""

    name: ClassVar[str] = "equity_fraction"


@component
class SmallExecution(Execution):
    """An execution without a function."""

    name: ClassVar[str] = "bar"


@component
class SmallLoss(Loss):
    """A loss without functions."""

    name: ClassVar[str] = "c51"


@component
class SmallTrainer(Trainer):
    """A trainer that does nothing."""

    name: ClassVar[str] = "dqn"
    batch: int = setting(64, "transitions", ge=1)
    steps: int = setting(10, "updates", ge=1)
    gamma: float = setting(0.99, "discount", ge=0.0, le=1.0)


class SmallPlugin:
    """One component of each kind that a profile needs."""

    @hookimpl
    def bellmark_datasets(self):
        return [SmallData]

    @hookimpl
    def bellmark_features(self):
        return [SmallFeature]

    @hookimpl
    def bellmark_rewards(self):
        return [SmallReward]

    @hookimpl
    def bellmark_sizings(self):
        return [SmallSizing]

    @hookimpl
    def bellmark_executions(self):
        return [SmallExecution]

    @hookimpl
    def bellmark_losses(self):
        return [SmallLoss]

    @hookimpl
    def bellmark_trainers(self):
        return [SmallTrainer]


SMALL_PROFILE = """\
schema_version = 1
description = "small"

[data]
use = "sample"

[features.return_1]
use = "log_return"

[rewards.log_equity]

[losses.c51]
"""


@pytest.fixture(scope="session")
def small_host():
    """A host with one component of each kind, none of them able to run."""
    host = Host()
    record = host.register(SmallPlugin(), "small")
    assert record.error is None
    return host


@pytest.fixture
def small_text():
    """A whole profile for `small_host`; keys of [trainer] may be added at its end after a table header."""
    return SMALL_PROFILE


@pytest.fixture
def small_profile(tmp_path, small_host):
    """The resolved small profile."""
    from bellmark.profile import load_profile

    path = tmp_path / "small.toml"
    path.write_text(SMALL_PROFILE, encoding="utf-8")
    return load_profile(path, environment={}, host=small_host)
