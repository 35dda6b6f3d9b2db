"""Profiles: what a run is, as TOML. Strict at every level; every value knows where it comes from.

Precedence: command line (`--set`), environment (`BELLMARK__SECTION__KEY`), the file, the file it `extends`, defaults. A problem says file,
line and key, what was expected and what was found. A layer that names another component in `use` drops the settings of the former one;
`LABEL = false` in a labelled section takes an inherited component away.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellmark import settings
from bellmark.component import Component, make, settings_of
from bellmark.errors import ProfileError, UnknownNameError, UsageError, did_you_mean, known_list
from bellmark.files import json_line, sha256_of
from bellmark.profile_layers import SCHEMA_VERSION, KeyPath, Layers, dotted, read_layers
from bellmark.profile_text import profile_text, toml_value

if TYPE_CHECKING:
    from bellmark.host import Host

__all__ = ["SCHEMA_VERSION", "Profile", "InvalidProfileError", "load_profile"]


class InvalidProfileError(ProfileError):
    """Everything that is wrong with a profile; `problems` holds one line for each, the text is the first."""

    def __init__(self, problems: Sequence[str]) -> None:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(problems[0] + more)
        self.problems = tuple(problems)


_CHANGES = ("--set", "--data", "argument")  # origins of values that a command line or a call gives


@dataclass(frozen=True, kw_only=True, eq=False)
class Profile:
    """A resolved profile: typed sections, component instances, and the origin of every value."""

    name: str
    description: str = ""
    data: Any
    instrument: settings.InstrumentSettings
    split: settings.SplitSettings
    market: settings.MarketSettings
    action: settings.ActionSettings
    environment: settings.EnvironmentSettings
    features: dict[str, Any]
    rewards: dict[str, Any]
    action_masks: dict[str, Any]
    sizing: Any
    execution: Any
    network: settings.NetworkSettings
    losses: dict[str, Any]
    replay: settings.ReplaySettings
    optimizer: settings.OptimizerSettings
    trainer: Any
    learners: settings.LearnersSettings
    baselines: dict[str, Any]
    trackers: dict[str, Any]
    reports: dict[str, Any]
    run: settings.RunSettings
    uses: dict[str, str] = field(repr=False)
    origins: dict[KeyPath, str] = field(repr=False)

    def origin(self, key: str | KeyPath) -> str:
        """Where a value comes from: `demo.toml:12`, `--set`, `BELLMARK__TRAINER__BATCH` or `default`."""
        return self.origins.get(tuple(key.split(".")) if isinstance(key, str) else key, "default")

    def values(self) -> dict[str, Any]:
        """Every value as plain data: section -> key -> value, labelled sections one level deeper."""
        return {section: self._section_values(section) for section in settings.ORDER}

    def command_changes(self) -> list[str]:
        """The options `--set KEY=VALUE` that make this profile out of the named one: what the command line or a call changed."""
        found = []
        for path, origin in self.origins.items():
            value: Any = self.values()
            for key in path if origin in _CHANGES else ():
                value = value.get(key) if isinstance(value, dict) else None
            if origin in _CHANGES and path[0] != "run" and value is not None and not isinstance(value, dict):
                found += ["--set", f"{dotted(path)}={toml_value(value)}"]
        return found

    def components(self) -> Iterator[tuple[str, str, Component]]:
        """Each component of the profile as (place, name given in `use`, instance), in the order of the sections."""
        for section in settings.ORDER:
            part = getattr(self, section)
            if section in settings.SINGLE:
                yield section, self.uses[section], part
            elif section in settings.LABELLED:
                for label, instance in part.items():
                    yield f"{section}.{label}", self.uses[f"{section}.{label}"], instance

    @cached_property
    def hash(self) -> str:
        """SHA-256 over every value that can change a result: all but names, origins and [run]. The order of labels counts."""
        return self._hash_without("run")

    @cached_property
    def configuration_hash(self) -> str:
        """Like `hash`, without seeds, baselines, trackers and reports: what counts as one configuration among the trials."""
        return self._hash_without("run", "learners", "baselines", "trackers", "reports")

    def differences(self, other: Profile) -> list[str]:
        """The keys whose values differ, as `trainer.batch: 64 here, 32 there`; [run] is left out."""
        mine, theirs = dict(_leaves(self.values())), dict(_leaves(other.values()))
        return [
            f"{dotted(path)}: {mine.get(path, 'absent')!r} here, {theirs.get(path, 'absent')!r} there"
            for path in sorted(mine.keys() | theirs.keys())
            if path[0] != "run" and mine.get(path, "absent") != theirs.get(path, "absent")
        ]

    def to_toml(self) -> str:
        """The whole profile as TOML with the origin of each value as a comment; loading it gives the same hash."""
        return profile_text(self.name, self.description, self.values(), self.origin)

    def _hash_without(self, *sections: str) -> str:
        values = {section: part for section, part in self.values().items() if section not in sections}
        for section in values.keys() & settings.LABELLED.keys():
            values[section] = list(values[section].items())
        return sha256_of(json_line(values))

    def _section_values(self, section: str) -> dict[str, Any]:
        part = getattr(self, section)
        if section in settings.SINGLE:
            return {"use": self.uses[section], **_plain_settings(part)}
        if section in settings.LABELLED:
            return {
                label: {"use": self.uses[f"{section}.{label}"], **_plain_settings(item)} for label, item in part.items()
            }
        return _plain_settings(part)


def load_profile(
    source: str | Path,
    *,
    sets: Sequence[str] = (),
    options: Mapping[str, tuple[Any, str]] | None = None,
    environment: Mapping[str, str] | None = None,
    host: Host | None = None,
) -> Profile:
    """The resolved profile of a built-in name or of a TOML file.

    `sets` are texts KEY=VALUE of the command line; `options` maps a dotted key to (value, origin) and comes before them. Without
    `environment` the process's own is read. Raises ProfileError with one line a problem.
    """
    if host is None:
        from bellmark.host import host as loaded_host

        host = loaded_host()
    environment = os.environ if environment is None else environment
    layers = read_layers(source, sets=sets, options=options or {}, environment=environment)
    return _Resolver(layers, host).profile()


class _Resolver:
    def __init__(self, layers: Layers, host: Host) -> None:
        self.layers = layers
        self.host = host
        self.problems: list[str] = list(layers.problems)
        self.uses: dict[str, str] = {}

    def profile(self) -> Profile:
        for section in self.layers.values:
            if section not in settings.ORDER:
                hint = did_you_mean(section, settings.ORDER) + known_list(settings.ORDER)
                self.problem((section,), f'unknown section "{section}"{hint}')
        parts = {section: self.part(section) for section in settings.ORDER}
        for section in ("features", "rewards", "losses"):
            if not self.layers.values.get(section):
                self.problem((section,), f"{section}: expected at least one table [{section}.LABEL], found none")
        if self.problems:
            raise InvalidProfileError(self.problems)
        layers = self.layers
        return Profile(
            name=layers.name, description=layers.description, uses=self.uses, origins=layers.origins, **parts
        )

    def problem(self, path: KeyPath, text: str) -> None:
        if len(path) > 1 and any(refused[: len(path)] == path for refused in self.layers.refused):
            return  # what stands in its place is not what the user wrote
        self.problems.append(f"{self.layers.place(path)}: {text}")

    def part(self, section: str) -> Any:
        values = self.layers.values.get(section, {})
        if not isinstance(values, dict):
            return self.problem((section,), f"{section}: expected a table, found {values!r}")
        if section in settings.SECTIONS:
            return self.build((section,), settings.SECTIONS[section], values)
        if section in settings.SINGLE:
            return self.component((section,), settings.SINGLE[section], values, settings.DEFAULT_USE.get(section))
        found = {}
        for label, inner in values.items():
            path = (section, label)
            if not label.isidentifier():
                self.problem(path, f'{section}: expected a label of letters, digits and _, found "{label}"')
            elif not isinstance(inner, dict):
                self.problem(path, f"{dotted(path)}: expected a table (or false to take it away), found {inner!r}")
            else:
                found[label] = self.component(path, settings.LABELLED[section], inner, label)
        return found

    def component(self, path: KeyPath, kind: str, values: dict[str, Any], default_use: str | None) -> Any:
        use = values.get("use", default_use)
        if not isinstance(use, str):
            names = known_list(self.host.catalog[kind])
            found = "nothing" if use is None else repr(use)
            return self.problem((*path, "use"), f"{dotted(path)}.use: expected the name of a {kind}, found {found}{names}")
        self.uses[dotted(path)] = use
        try:
            cls = self.host.get(kind, use)
        except UnknownNameError as error:
            key = (*path, "use") if "use" in values else path
            return self.problem(key, f"{dotted(key)}: {error}")
        return self.build(path, cls, {key: value for key, value in values.items() if key != "use"})

    def build(self, path: KeyPath, cls: type[Component], values: dict[str, Any]) -> Any:
        """One instance; every wrong key is a problem of its own, so each round leaves out the one just found."""
        known = [info.name for info in settings_of(cls)]
        where, values = dotted(path), dict(values)
        for key in [key for key in values if key not in known]:
            del values[key]
            self.problem((*path, key), f'{where}: unknown key "{key}"{_hint(key, known)}')
        wrong: set[int | str] = set()
        while True:
            try:
                return make(cls, values, where)
            except UsageError as error:
                fault, text = _at_fault(str(error), where, known)
                if fault and fault[0] in wrong:
                    return None  # it is required, and it was there
                wrong.update(fault[:1])
                self.problem((*path, *fault), f"{dotted((*path, *fault))}: {text}")
                if not fault or fault[0] not in values:
                    return None
                del values[str(fault[0])]


def _hint(key: str, known: Sequence[str]) -> str:
    homes = [name for name, cls in settings.SECTIONS.items() if key in (info.name for info in settings_of(cls))]
    near = did_you_mean(key, known) or (f"; it is a key of [{homes[0]}]" if homes else "")
    return near + known_list(known)


def _at_fault(message: str, where: str, known: Sequence[str]) -> tuple[KeyPath, str]:
    """The key below `where` that a message of `make` names, and the rest of the message."""
    place, _, text = message.partition(": ")
    parts = place[len(where) :].lstrip(".").split(".") if place != where else []
    if not parts and text.startswith("section '"):
        text = text.partition(": ")[2]
        key, _, rest = text.partition(": ")
        if key in known:  # a rule between several keys that blames one of them
            return (key,), rest
    kept = [part for number, part in enumerate(parts) if number == 0 or part.isdigit()]
    return tuple(int(part) if part.isdigit() else part for part in kept), text


def _plain_settings(instance: Any) -> dict[str, Any]:
    return {info.name: _plain(getattr(instance, info.name)) for info in settings_of(type(instance))}


def _plain(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return str(value) if isinstance(value, Path) else value


def _leaves(values: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    if isinstance(values, dict):
        for key, value in values.items():
            yield from _leaves(value, (*path, key))
    else:
        yield path, values
