"""The plugin host: finds plugins, loads each on its own, checks what it brings, and answers for names.

Differs from pluggy's own loader, which stops at the first broken plugin and does not name it: here each plugin is tried alone, a failure
is kept with its reason and shown by `bellmark plugins list`, and the others go on. Built-ins come in through the same entry-point group.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import pluggy

from bellmark import hookspecs
from bellmark.component import KINDS, Component, hook_name
from bellmark.errors import BellmarkError, PluginError, UnknownNameError, UsageError, did_you_mean, known_list

ENTRY_POINT_GROUP = "bellmark"


@dataclass(frozen=True)
class Entry:
    """One component in the catalog and where it comes from."""

    cls: type[Component]
    plugin: str
    distribution: str
    version: str

    @property
    def kind(self) -> str:
        return self.cls.kind

    @property
    def name(self) -> str:
        return self.cls.name

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.cls) or "").split("\n", 1)[0]


@dataclass
class PluginRecord:
    """One plugin: where it comes from, whether it loaded, and why not."""

    name: str
    distribution: str
    version: str
    status: str = "ok"
    error: str | None = None
    components: list[Entry] = field(default_factory=list)
    source: str = ""


class Host:
    """The loaded plugins and the catalog of their components."""

    def __init__(self) -> None:
        self.plugins: list[PluginRecord] = []
        self.catalog: dict[str, dict[str, list[Entry]]] = {kind: {} for kind in KINDS}
        self._manager = pluggy.PluginManager("bellmark")
        self._manager.add_hookspecs(hookspecs)

    def load(self, plugins_dir: Path | str | None = None) -> Host:
        """Loads every installed plugin and, if given, each module in a folder. Never raises for a broken plugin."""
        points = sorted(importlib.metadata.entry_points(group=ENTRY_POINT_GROUP), key=lambda point: (point.name, point.value))
        seen: set[tuple[str, str]] = set()
        for point in points:
            if (point.name, point.value) in seen:  # an editable install beside a wheel lists a plugin twice
                continue
            seen.add((point.name, point.value))
            name, version = (point.dist.name, point.dist.version) if point.dist is not None else ("", "")
            self._add(PluginRecord(point.name, name, version, source=point.value), point.load)
        for path in _modules_in(plugins_dir):
            self._add(PluginRecord(path.stem, "", "", source=str(path)), lambda path=path: _import_file(path))
        return self

    def register(self, module: ModuleType | Any, name: str) -> PluginRecord:
        """Adds one plugin object under a name, as tests and notebooks do."""
        record = PluginRecord(name, "", "", source=name)
        self._add(record, lambda: module)
        return record

    def get(self, kind: str, name: str) -> type[Component]:
        """The component class of a kind by its name, or by `plugin:name` where two plugins use one name."""
        return self.entry(kind, name).cls

    def entry(self, kind: str, name: str) -> Entry:
        """Like `get`, with the plugin, distribution and version."""
        names = self.catalog[kind]
        plugin, _, bare = name.rpartition(":")
        found = [entry for entry in names.get(bare, []) if not plugin or entry.plugin == plugin]
        if len(found) == 1:
            return found[0]
        if found:
            choices = " or ".join(f"'{entry.plugin}:{bare}'" for entry in found)
            raise UnknownNameError(f"two plugins bring a {kind} named '{bare}': say {choices}")
        broken = sorted((record for record in self.plugins if record.error), key=lambda record: record.name != plugin)
        reason = "".join(f"; plugin '{record.name}' did not load: {record.error}" for record in broken[:2])
        label = kind.replace("_", " ")
        raise UnknownNameError(f"no {label} named '{name}'{did_you_mean(bare, names)}{known_list(names)}{reason}")

    def entries(self, kind: str | None = None) -> list[Entry]:
        """Every component, ordered by kind and name."""
        kinds = [kind] if kind else list(KINDS)
        return [entry for each in kinds for name in sorted(self.catalog[each]) for entry in self.catalog[each][name]]

    def plugin_of(self, cls: type[Component]) -> str:
        """The plugin that brought a class; where none did, as in a notebook, its module."""
        return next((entry.plugin for entry in self.entries(cls.kind) if entry.cls is cls), cls.__module__)

    def _add(self, record: PluginRecord, load: Any) -> None:
        self.plugins.append(record)
        plugin: Any = None
        try:
            plugin = load()
            _check_hook_names(plugin)
            self._manager.register(plugin, name=f"{record.name}@{record.source}")
            self._manager.check_pending()
            record.components = self._collect(plugin, record)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a plugin may raise anything, SystemExit too
            record.status, record.error = "failed", _reason(error)
            record.components = []
            if plugin is not None and self._manager.is_registered(plugin):
                self._manager.unregister(plugin)
            return
        for entry in record.components:
            self.catalog[entry.kind].setdefault(entry.name, []).append(entry)

    def _collect(self, plugin: Any, record: PluginRecord) -> list[Entry]:
        entries: list[Entry] = []
        for kind, base in KINDS.items():
            hook = getattr(plugin, hook_name(kind), None)
            if hook is None:
                continue
            if not hasattr(hook, "bellmark_impl"):
                raise PluginError(f"{hook_name(kind)}: expected the decorator @hookimpl, found a plain function")
            try:
                found = list(hook())
            except (Exception, SystemExit) as error:
                raise PluginError(f"hook {hook_name(kind)} raised {_reason(error)}") from error
            entries += [_checked(cls, base, kind, record) for cls in found]
        names = [(entry.kind, entry.name) for entry in entries]
        for pair in names:
            if names.count(pair) > 1:
                raise PluginError(f"{pair[0]} '{pair[1]}' is given twice")
        return entries


_HOOKS = tuple(hook_name(kind) for kind in KINDS)


def _check_hook_names(plugin: Any) -> None:
    for name in dir(plugin):
        if name.startswith("bellmark_") and name not in _HOOKS and hasattr(getattr(plugin, name), "bellmark_impl"):
            raise PluginError(f"hook '{name}': no such hook{did_you_mean(name, _HOOKS)}{known_list(_HOOKS)}")


def _checked(cls: Any, base: type[Component], kind: str, record: PluginRecord) -> Entry:
    label = getattr(cls, "__name__", repr(cls))
    if not isinstance(cls, type) or not issubclass(cls, base):
        raise PluginError(f"hook {hook_name(kind)}: expected classes derived from {base.__name__}, found {label}")
    if "__pydantic_fields__" not in cls.__dict__:
        raise PluginError(f"{kind} {label}: expected the decorator @component on the class")
    return Entry(cls, record.name, record.distribution, record.version)


def _reason(error: BaseException) -> str:
    if isinstance(error, BellmarkError):
        return str(error)
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _modules_in(folder: Path | str | None) -> Iterable[Path]:
    if folder is None:
        return []
    path = Path(folder)
    if not path.is_dir():
        raise UsageError(f"{path}: expected a folder of plugins, found {'a file' if path.exists() else 'nothing'}")
    return sorted(item for item in path.glob("*.py") if not item.name.startswith("_"))


def _import_file(path: Path) -> ModuleType:
    name = f"bellmark_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise PluginError(f"{path}: it cannot be imported")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


_loaded: dict[str | None, Host] = {}


def host(plugins_dir: Path | str | None = None) -> Host:
    """The process-wide host, loaded once a plugin folder; without one, $BELLMARK_PLUGINS names it (`--plugins` sets it)."""
    plugins_dir = plugins_dir or os.environ.get("BELLMARK_PLUGINS") or None
    key = str(plugins_dir) if plugins_dir is not None else None
    if key not in _loaded:
        _loaded[key] = Host().load(plugins_dir)
    return _loaded[key]
