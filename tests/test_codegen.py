"""Generated code: wired by name, lowered with everything it reaches, and never served stale."""

import enum
import subprocess
import sys
import textwrap
import types

import numba
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


def hash_of(text, **scope):
    """The fingerprint of `outer` in a text with some globals."""
    exec(text, scope)
    return fingerprint([scope["outer"]])


def module_of(name="constants", **values):
    module = types.ModuleType(name)
    vars(module).update(values)
    return module


def closures(*factors):
    scope = {}
    exec("def maker(factor):\n    def inner(x):\n        return x * factor\n    return inner", scope)
    return dict(zip("fg", map(scope["maker"], factors), strict=True))


def default_of(text):
    scope = {}
    exec(text, scope)
    return {"given": scope["given"]}


long_T = np.zeros(2000)
READS = "def outer(x):\n    return x * m.SCALE"
TWO = "def outer(x):\n    return f(x) + g(x)"
CASTS = "def outer(x):\n    return real(x)"
DEFAULT = "def outer(x, f=given):\n    return f(x)"
HIDDEN = [
    ("module attribute", READS, {"m": module_of(SCALE=2.0)}, {"m": module_of(SCALE=3.0)}),
    ("function of a module", "def outer(x):\n    return m.f(x)", {"m": module_of(**closures(1.0, 2.0))},
     {"m": module_of(**closures(3.0, 2.0))}),
    ("module in a module", "def outer(x):\n    return m.inner.SCALE", {"m": module_of(inner=module_of("n", SCALE=2.0))},
     {"m": module_of(inner=module_of("n", SCALE=3.0))}),
    ("second closure of one maker", TWO, closures(2.0, 3.0), closures(2.0, 4.0)),
    ("type of Numba", CASTS, {"real": numba.float32}, {"real": numba.float64}),
    ("member of an enumeration", "def outer(x):\n    return E.A", {"E": enum.IntEnum("E", {"A": 1})}, {"E": enum.IntEnum("E", {"A": 2})}),
    ("middle of a long default", "def outer(x, a=given):\n    return a[1000]", {"given": long_T},
     {"given": long_T + (np.arange(2000) == 1000)}),
    ("function as a default", DEFAULT, default_of("def given(x):\n    return x * 2"), default_of("def given(x):\n    return x * 3")),
]  # fmt: skip


@pytest.mark.parametrize(("text", "one", "other"), [case[1:] for case in HIDDEN], ids=[case[0] for case in HIDDEN])
def test_the_fingerprint_sees_whatever_numba_freezes(text, one, other):
    assert hash_of(text, **one) == hash_of(text, **one) != hash_of(text, **other)


def test_the_environment_of_numba_is_part_of_the_key(monkeypatch):
    text = "def entry(x_T):\n    x_T[0] = 1\n"
    plain = build("test_options", text, {})
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", 1)
    assert build("test_options", text, {}) is not plain


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
