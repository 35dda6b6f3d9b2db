"""Lines of keys, compared with what tomllib reads."""

import tomllib

from bellmark.toml_lines import key_lines

TEXT = '''# comment [not.a.table]
schema = 1 # "x
a.b."c d" = """multi
line # not a comment
[x] = 1""" # yes
[t1]
x = [ 1, # one
  "two]", [3,
  4], { q = 1, r.s = "}" },
]
"trailing " = 2.5
empty = [ ]
[[arr]]
n = 1
[[arr]]
n = 2024-01-01 10:00:00
[arr.sub]
k = 'lit\\'
quotes = """a""""
[ "q.r" . s ]
z=true'''


def leaves(value, path=()):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for place, item in enumerate(value):
            yield from leaves(item, (*path, place))
    else:
        yield path


def test_every_key_of_a_text_has_the_line_on_which_it_stands():
    lines = key_lines(TEXT)
    expected = {
        ("schema",): 2,
        ("a", "b", "c d"): 3,
        ("t1", "x", 0): 7,
        ("t1", "x", 1): 8,
        ("t1", "x", 2, 0): 8,
        ("t1", "x", 2, 1): 9,
        ("t1", "x", 3, "q"): 9,
        ("t1", "x", 3, "r", "s"): 9,
        ("t1", "trailing "): 11,
        ("arr", 0, "n"): 14,
        ("arr", 1, "n"): 16,
        ("arr", 1, "sub", "k"): 18,
        ("arr", 1, "sub", "quotes"): 19,
        ("q.r", "s", "z"): 21,
    }
    assert {path: lines[path] for path in leaves(tomllib.loads(TEXT))} == expected


def test_tables_have_lines_too():
    lines = key_lines(TEXT)
    assert (lines[("t1",)], lines[("arr",)], lines[("arr", 1)], lines[("q.r",)], lines[("a", "b")]) == (6, 13, 15, 20, 3)


def test_windows_line_ends_and_an_empty_text():
    assert key_lines("a = 1\r\n[b]\r\nc = [\r\n 1]\r\n")[("b", "c", 0)] == 4
    assert key_lines("") == {}
