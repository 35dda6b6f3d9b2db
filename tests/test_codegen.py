"""Generated code: wired by name, lowered with everything it reaches, and never served stale."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest

from bellmark import backend
from bellmark.codegen import build, call_text, fingerprint, lower
from bellmark.errors import PluginError

FACTOR = 3


def helper(x):
    return x * FACTOR


def calls_helper(x):
    return helper(x) + 1


def recursive(x):
    return recursive(x - 1) if x > 0 else 0


def test_a_plain_function_is_lowered_with_the_helpers_it_calls():
    assert lower(calls_helper)(2) == 7


def test_recursion_is_refused_by_name():
    with pytest.raises(PluginError, match="recursive: it calls itself"):
        lower(recursive)


def test_arguments_are_wired_by_name_and_a_wrong_name_tells_the_nearest():
    def feature(t, clsoe_T):
        return clsoe_T[t]

    assert call_text(calls_helper, {"x": "value", "y": "other"}, "here") == "value"
    with pytest.raises(PluginError, match=r"plugin 'p': no argument named 'clsoe_T'; did you mean 'close_T'\?"):
        call_text(feature, {"t": "t", "close_T": "close_T"}, "plugin 'p'")


def test_a_built_text_runs_and_an_equal_text_is_the_same_function():
    text = "def entry(x_T):\n    for t in range(x_T.shape[0]):\n        x_T[t] = f(x_T[t])\n"
    entry = build("test_built", text, {"f": calls_helper})
    x_T = np.arange(3)
    entry(x_T)
    assert x_T.tolist() == [1, 4, 7]
    assert build("test_built", text, {"f": calls_helper}) is entry


def test_the_fingerprint_sees_helpers_constants_and_signs_of_zero():
    def scope(factor):
        space = {"factor": factor}
        exec("def inner(x):\n    return x * factor\ndef outer(x):\n    return inner(x)", space)
        return fingerprint([space["outer"]])

    assert scope(2.0) == scope(2.0)
    assert len({scope(2.0), scope(3.0), scope(0.0), scope(-0.0), scope(np.float32(2.0)), scope(2)}) == 6


@backend.compile
def doubled(x_T):
    """Doubles in place."""
    for t in range(x_T.shape[0]):
        x_T[t] *= 2.0


def test_a_kernel_of_the_engine_compiles_at_its_first_call():
    x_T = np.ones(4)
    doubled(x_T)
    assert x_T.tolist() == [2.0] * 4


PLUGIN = """
    from helper_module import scale
    def function(x):
        return scale(x)
"""
MAIN = """
    import sys, numpy as np
    sys.path.insert(0, sys.argv[1])
    import plugin_module
    from bellmark.codegen import build
    x = np.ones(1)
    build("stale", "def entry(x):\\n    x[0] = f(x[0])\\n", {"f": plugin_module.function})(x)
    print(x[0])
"""


def test_editing_a_helper_that_a_plugin_calls_changes_the_next_run(tmp_path):
    (tmp_path / "plugin_module.py").write_text(textwrap.dedent(PLUGIN))
    (tmp_path / "main.py").write_text(textwrap.dedent(MAIN))
    printed = []
    for factor in (2.0, 5.0, 2.0):
        (tmp_path / "helper_module.py").write_text(f"FACTOR = {factor}\ndef scale(x):\n    return x * FACTOR\n")
        done = subprocess.run(
            [sys.executable, "-B", str(tmp_path / "main.py"), str(tmp_path)],
            env={"BELLMARK_CACHE_DIR": str(tmp_path / "cache"), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        )
        printed.append(float(done.stdout))
    assert printed == [2.0, 5.0, 2.0]
