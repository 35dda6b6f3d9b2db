"""The command line in this process (fast) and in its own (exit codes)."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from bellmark.cli import main


class Result:
    """What a command printed, and its exit code."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def errors(self):
        return [line for line in self.err.splitlines() if line.startswith("error: ")]


@pytest.fixture
def bellmark(monkeypatch, tmp_path):
    """Runs a command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BELLMARK_PLUGINS", "")  # so that what --plugins sets is undone

    def run(*arguments):
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        return Result(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def process(tmp_path):
    """Runs a command line in a process of its own, in an empty folder."""

    def run(*arguments, **options):
        command = [sys.executable, "-P", "-m", "bellmark", *(str(argument) for argument in arguments)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=120, **options)
        return Result(done.returncode, done.stdout, done.stderr)

    return run
