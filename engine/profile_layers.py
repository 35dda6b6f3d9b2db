"""Reads the layers of a profile (files, environment, command line) and lays them over each other, keeping the origin of each value."""

from __future__ import annotations

import datetime
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bellmark import settings
from bellmark.errors import ProfileError, UsageError, did_you_mean, known_list
from bellmark.files import reason
from bellmark.toml_lines import KeyPath, key_lines

SCHEMA_VERSION = 1
_PREFIX = "BELLMARK__"
_TOP_KEYS = ("schema_version", "extends", "name", "description")


class Layers:
    """The merged plain values with the origin of each, before any type is checked."""

    def __init__(self, name: str, description: str, file: str) -> None:
        self.name = name
        self.description = description
        self.file = file
        self.values: dict[str, Any] = {}
        self.origins: dict[KeyPath, str] = {}
        self.problems: list[str] = []
        self.refused: set[KeyPath] = set()  # values that `problems` speaks of already

    def place(self, path: KeyPath) -> str:
        """Where a key is given; for an absent key its nearest table, else the file."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.origins:
                return self.origins[path[:length]]
        return self.file

    def add(self, values: dict[str, Any], origin_of: Any) -> None:
        """Lays one layer over those before; `origin_of(path)` says where a key of it stands."""
        self._merge(self.values, values, (), origin_of)

    def _merge(self, into: dict[str, Any], values: dict[str, Any], above: KeyPath, origin_of: Any) -> None:
        for key, value in values.items():
            path = (*above, key)
            if isinstance(value, dict):
                if _names_another(path, into.get(key), value):
                    self._forget(path)
                    into.pop(key)
                if not isinstance(into.get(key), dict):
                    self._forget(path)
                    into[key] = {}
                self.origins.setdefault(path, origin_of(path))
                self._merge(into[key], value, path, origin_of)
            elif value is False and len(path) == 2 and path[0] in settings.LABELLED:
                self._take_away(into, path, origin_of)
            else:
                self._forget(path)
                into[key] = self._checked(value, path, origin_of)

    def _take_away(self, into: dict[str, Any], path: KeyPath, origin_of: Any) -> None:
        label = str(path[1])
        if label not in into:
            hint = did_you_mean(label, into) + known_list(into)
            self.problems.append(f"{origin_of(path)}: {dotted(path)}: there is no such label to take away{hint}")
        into.pop(label, None)
        self._forget(path)

    def _forget(self, path: KeyPath) -> None:
        for known in [known for known in self.origins if known[: len(path)] == path]:
            del self.origins[known]

    def _checked(self, value: Any, path: KeyPath, origin_of: Any) -> Any:
        self.origins[path] = origin_of(path)
        if isinstance(value, list):
            return [self._checked(item, (*path, place), origin_of) for place, item in enumerate(value)]
        if isinstance(value, dict):
            return {key: self._checked(item, (*path, key), origin_of) for key, item in value.items()}
        if isinstance(value, datetime.date | datetime.time):
            return value.isoformat()
        if isinstance(value, float) and not math.isfinite(value):
            self.problems.append(f"{origin_of(path)}: {dotted(path)}: expected a finite number, found {value}")
            self.refused.add(path)
            return 0.0
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            self.problems.append(f"{origin_of(path)}: {dotted(path)}: expected an integer of 64 bits, found {value}")
            self.refused.add(path)
            return 0
        return value


def read_layers(
    source: str | Path,
    *,
    sets: Sequence[str],
    options: Mapping[str, tuple[Any, str]],
    environment: Mapping[str, str],
) -> Layers:
    """All layers of a profile laid over each other: bases first, then the file, the environment, and the command line."""
    chain = _chain(source)
    _, shown, top, _ = chain[0]
    layers = Layers(_text(top, "name", shown) or _stem(shown), _text(top, "description", shown), shown)
    for _, label, values, lines in reversed(chain):
        sections = {key: value for key, value in values.items() if key not in _TOP_KEYS}
        layers.add(sections, lambda path, label=label, lines=lines: f"{label}:{_line(lines, path)}")
    for name in sorted(key for key in environment if key.startswith(_PREFIX)):
        parts = tuple(part.lower() for part in name[len(_PREFIX) :].split("__"))
        if len(parts) < 2 or not all(parts):
            raise UsageError(f"{name}: expected {_PREFIX}SECTION__KEY")
        layers.add(_nested(parts, _value(environment[name])), lambda path, name=name: name)
    for key, (value, origin) in options.items():
        layers.add(_nested(tuple(key.split(".")), value), lambda path, origin=origin: origin)
    for text in sets:
        path, value = _setting(text)
        layers.add(_nested(path, value), lambda path: "--set")
    return layers


def builtin_profiles() -> dict[str, Path]:
    """The profiles that come with Bellmark: name -> file."""
    import bellmark.profiles

    folder = Path(str(bellmark.profiles.__file__)).parent
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def parse_settings(texts: Sequence[str]) -> dict[str, Any]:
    """Texts KEY=VALUE of the command line as nested values, for settings outside a profile."""
    values: dict[str, Any] = {}
    for text in texts:
        path, value = _setting(text, 1)
        into = values
        for part in path[:-1]:
            into = into.setdefault(str(part), {})
            if not isinstance(into, dict):
                raise UsageError(f"--set: {dotted(path)}: '{part}' has a value of its own already")
        into[str(path[-1])] = value
    return values


def dotted(path: KeyPath) -> str:
    """A key path as people write it: `trainer.hidden[1]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + (part if re.fullmatch(r"[\w-]+", part) else f'"{part}"')
    return text


_File = tuple[Path, str, dict[str, Any], dict[KeyPath, int]]


def _chain(source: str | Path) -> list[_File]:
    """The file and those it extends, nearest first: (path, name to show, values, lines)."""
    path, shown = _find(source, None, "")
    chain: list[_File] = []
    while True:
        if any(path.resolve() == seen.resolve() for seen, *_ in chain):
            circle = " -> ".join([*(label for _, label, *_ in chain), shown])
            raise ProfileError(f"{chain[-1][1]}: extends: expected a chain that ends, found a circle: {circle}")
        values, lines = _read(path, shown)
        chain.append((path, shown, values, lines))
        base = _text(values, "extends", shown, lines)
        if not base:
            return chain
        path, shown = _find(base, path, f"{shown}:{_line(lines, ('extends',))}: extends: ")


def _find(source: str | Path, beside: Path | None, where: str) -> tuple[Path, str]:
    """The file of a profile and the name that errors and origins show for it."""
    text = str(source)
    builtin = builtin_profiles()
    if isinstance(source, str) and text in builtin:
        return builtin[text], builtin[text].name
    if text.endswith(".toml") or "/" in text or "\\" in text or isinstance(source, Path):
        try:
            path = (beside.parent if beside is not None else Path()) / Path(text).expanduser()
        except RuntimeError as error:  # the home folder of nobody
            raise ProfileError(f"{where}{text}: the profile cannot be read: {error}") from error
        return path, str(path)
    raise ProfileError(f"{where}no profile named '{text}'{did_you_mean(text, builtin)}{known_list(builtin)}")


def _read(path: Path, shown: str) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        near = did_you_mean(path.name, [item.name for item in path.parent.glob("*.toml")])
        raise ProfileError(f"{shown}: the profile cannot be read: {reason(error)}{near}") from error
    except UnicodeDecodeError as error:
        raise ProfileError(f"{shown}: expected UTF-8 text, found other bytes at position {error.start}") from error
    except ValueError as error:  # a zero byte in the name
        raise ProfileError(f"{shown!r}: the profile cannot be read: {error}") from error
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.fullmatch(r"(.*) \(at line (\d+), column \d+\)", str(error))
        line, message = (found[2], found[1]) if found else (str(text.count("\n") + 1), str(error).split(" (at ")[0])
        raise ProfileError(f"{shown}:{line}: expected TOML, found an error: {message[:1].lower()}{message[1:]}") from error
    lines = key_lines(text)
    version = values.get("schema_version", SCHEMA_VERSION)
    place = f"{shown}:{_line(lines, ('schema_version',))}: schema_version"
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ProfileError(f"{place}: expected int >= 1, found {version!r}")
    if version > SCHEMA_VERSION:
        raise ProfileError(f"{place}: this Bellmark reads up to {SCHEMA_VERSION}, found {version}: a newer one wrote it")
    return values, lines


def _text(values: dict[str, Any], key: str, shown: str, lines: dict[KeyPath, int] | None = None) -> str:
    value = values.get(key, "")
    if not isinstance(value, str):
        line = f":{_line(lines, (key,))}" if lines else ""
        raise ProfileError(f"{shown}{line}: {key}: expected text, found {value!r}")
    return value


def _stem(shown: str) -> str:
    return Path(shown).stem


def _line(lines: dict[KeyPath, int], path: KeyPath) -> int:
    while path and path not in lines:
        path = path[:-1]
    return lines.get(path, 1)


def _names_another(path: KeyPath, former: Any, value: dict[str, Any]) -> bool:
    """Whether a table of a layer puts another component in the place of an inherited one."""
    if not isinstance(former, dict) or "use" not in value:
        return False
    if len(path) == 1 and path[0] in settings.SINGLE:
        default: Any = settings.DEFAULT_USE.get(str(path[0]))
    elif len(path) == 2 and path[0] in settings.LABELLED:
        default = path[1]
    else:
        return False
    return bool(former.get("use", default) != value["use"])


def _setting(text: str, parts: int = 2) -> tuple[KeyPath, Any]:
    key, sign, value = text.partition("=")
    try:
        keys = list(_single_path(tomllib.loads(f"{key.strip()} = 0"))) if sign and "\n" not in key else []
    except (tomllib.TOMLDecodeError, ValueError):
        keys = []
    if len(keys) < parts:
        raise UsageError(f"--set: expected {'SECTION.' if parts > 1 else ''}KEY=VALUE, found '{text}'")
    return tuple(keys), _value(value.strip())


def _single_path(values: Any) -> Iterator[str]:
    while isinstance(values, dict):
        (key,) = values
        yield key
        values = values[key]


def _value(text: str) -> Any:
    """A TOML value if the text is one, else the text itself."""
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return parsed["value"] if len(parsed) == 1 else text


def _nested(path: KeyPath, value: Any) -> dict[str, Any]:
    for part in reversed(path):
        value = {str(part): value}
    return dict(value)
