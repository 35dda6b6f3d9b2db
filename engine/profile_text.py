"""Writes plain values as TOML text that `tomllib` reads back to the same values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from bellmark.toml_lines import KeyPath

_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_WIDTH = 44


def profile_text(name: str, description: str, sections: dict[str, Any], origin: Callable[[KeyPath], str]) -> str:
    """A resolved profile: every section and key in its order, with the origin of each value as a comment."""
    head = {"schema_version": 1, "name": name} | ({"description": description} if description else {})
    lines = ["# resolved profile: every value, and where it comes from"]
    lines += [f"{key} = {toml_value(value)}" for key, value in head.items()]
    for section, values in sections.items():
        if values and all(isinstance(value, dict) for value in values.values()):
            for label, inner in values.items():
                lines += _table((section, label), inner, origin)
        elif values:
            lines += _table((section,), values, origin)
    return "\n".join(lines) + "\n"


def toml_value(value: Any) -> str:
    """One value as TOML; tuples and lists become arrays, mappings inline tables without their empty (None) keys."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return '"' + "".join(_letter(letter) for letter in value) + '"'
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if isinstance(value, dict):
        pairs = ", ".join(f"{toml_key(key)} = {toml_value(item)}" for key, item in value.items() if item is not None)
        return "{ " + pairs + " }" if pairs else "{}"
    raise TypeError(f"TOML has no {type(value).__name__}")


def toml_key(key: str) -> str:
    """A key, quoted where it must be."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_value(key)


def _table(path: KeyPath, values: dict[str, Any], origin: Callable[[KeyPath], str]) -> list[str]:
    lines = ["", "[" + ".".join(toml_key(str(part)) for part in path) + "]"]
    for key, value in values.items():
        text = f"# {toml_key(key)} is not set" if value is None else f"{toml_key(key)} = {toml_value(value)}"
        lines.append(f"{text:<{_WIDTH}}  # {origin((*path, key))}")
    return lines


def _letter(letter: str) -> str:
    if letter in _ESCAPES:
        return _ESCAPES[letter]
    return f"\\u{ord(letter):04x}" if ord(letter) < 32 or ord(letter) == 127 else letter
