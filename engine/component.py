"""Components: the frozen, typed settings classes that plugins bring, one base class a kind.

A component has a `name`, its settings as fields, and the functions of its kind. Functions that run inside compiled code are
static methods whose parameters are wired by name (see `bellmark.codegen`).
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, ClassVar, Literal, TypeVar, dataclass_transform

from bellmark.errors import BellmarkError, PluginError, UsageError, did_you_mean, known_list

_MISSING = dataclasses.MISSING
_BOUNDS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}


def setting(
    default: Any = _MISSING,
    meaning: str = "",
    *,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
    unit: str = "",
    static: bool = False,
) -> Any:
    """One setting of a component: its default, what it means, its bounds and its unit.

    Without a default the setting is required. A `static` setting is a constant of the generated code (it decides structure); any other
    one is loaded from a settings buffer while the code runs, so that changing it never compiles anything.
    """
    from pydantic import Field

    bounds: dict[str, Any] = {key: value for key, value in {"ge": ge, "gt": gt, "le": le, "lt": lt}.items() if value is not None}
    extra: dict[str, Any] = {"unit": unit, "static": static, "bounds": bounds}
    if isinstance(default, list | dict | set):
        raise PluginError(f"setting: expected an immutable default, found {type(default).__name__}")
    if default is _MISSING:
        return Field(description=meaning, json_schema_extra=extra, **bounds)
    return Field(default=default, description=meaning, json_schema_extra=extra, **bounds)


@dataclasses.dataclass(frozen=True)
class SettingInfo:
    """What `plugins show` prints of one setting."""

    name: str
    type: Any
    type_text: str
    default: Any
    required: bool
    meaning: str
    unit: str
    static: bool
    bounds: dict[str, float]
    choices: tuple[str, ...]

    @property
    def expected(self) -> str:
        """The type with its bounds, as an error says it: 'int >= 1'."""
        if self.choices:
            return "one of " + ", ".join(repr(choice) for choice in self.choices)
        return " ".join([self.type_text, *(f"{_BOUNDS[key]} {value:g}" for key, value in self.bounds.items())])


_Class = TypeVar("_Class", bound=type)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(setting,))
def component(cls: _Class) -> _Class:
    """Makes a component class a frozen, keyword-only, strictly typed pydantic dataclass that refuses unknown keys."""
    from pydantic import ConfigDict
    from pydantic.dataclasses import dataclass

    if not isinstance(cls, type) or not issubclass(cls, Component) or not cls.kind:
        raise PluginError(f"{getattr(cls, '__name__', cls)}: expected a class of one of the component kinds{known_list(KIND_NAMES)}")
    name = cls.__dict__.get("name")
    if not isinstance(name, str) or not name.isidentifier():
        raise PluginError(f"{cls.__name__}.name: expected an identifier, found {name!r}")
    _check_class(cls)
    config = ConfigDict(extra="forbid", strict=True, arbitrary_types_allowed=True)
    made: Any = dataclass(cls, frozen=True, kw_only=True, config=config)  # type: ignore[call-overload]
    return typing.cast(_Class, made)


def _check_class(cls: Any) -> None:
    """What a class says of itself beside its settings."""
    from bellmark.actions import ORDER_TYPES

    who = f"{cls.kind} '{cls.name}' ({cls.__module__}.{cls.__qualname__})"
    if cls.kind in ("sizing", "action_mask", "execution") and getattr(cls, "state", None):
        raise PluginError(f"{who}: expected no state, found {', '.join(cls.state)}: it is called more than once a bar")
    if cls.kind == "execution":
        for name in ("order_types", "needs"):
            if not isinstance(getattr(cls, name), tuple):
                raise PluginError(f"{who}: {name}: expected a tuple of names, found {getattr(cls, name)!r}")
        unknown = [name for name in cls.order_types if name not in ORDER_TYPES]
        if unknown or not cls.order_types:
            raise PluginError(f"{who}: order_types: expected some of {', '.join(ORDER_TYPES)}, found {cls.order_types!r}")


@contextmanager
def plugin_function(component: Any, function: str) -> Iterator[None]:
    """Runs a function that a plugin wrote: whatever it raises, SystemExit too, becomes one line that names component and function."""
    try:
        yield
    except BellmarkError:
        raise
    except (Exception, SystemExit) as error:
        cls = type(component)
        raise PluginError(
            f"{cls.kind} '{cls.name}' ({cls.__module__}.{cls.__qualname__}): {function} raised {type(error).__name__}: {error}"
        ) from error


class Component:
    """What every component has. `kind` comes from the base class of the kind, `name` from the component."""

    kind: ClassVar[str] = ""
    name: ClassVar[str] = ""


class Dataset(Component):
    """A source of bars. `read()` returns a list of (Bars, Instrument)."""

    kind: ClassVar[str] = "dataset"

    def read(self) -> list[Any]:
        """Bars and instrument of each symbol, strictly checked."""
        raise PluginError(f"dataset {self.name}: it has no function read")


class Feature(Component):
    """One column of the observation: `row` or `scan` over the tape (market feature) or `lane` over the account (portfolio feature)."""

    kind: ClassVar[str] = "feature"
    state: ClassVar[dict[str, str]] = {}

    def warm_up(self) -> int:
        """Bars before the value is honest; none by default."""
        return 0


class Reward(Component):
    """A term of the reward: the lane function `reward`, after each marked bar."""

    kind: ClassVar[str] = "reward"
    state: ClassVar[dict[str, str]] = {}


class ActionMask(Component):
    """Says which actions are legal: the lane function `allowed`, once an action."""

    kind: ClassVar[str] = "action_mask"
    state: ClassVar[dict[str, str]] = {}


class Sizing(Component):
    """Turns an exposure into target lots: the lane function `target`. `series` and `compute_series`: see Strategy."""

    kind: ClassVar[str] = "sizing"
    state: ClassVar[dict[str, str]] = {}
    series: ClassVar[dict[str, str]] = {}
    series_settings: ClassVar[tuple[str, ...] | None] = None

    def compute_series(self, tape: Any) -> dict[str, Any]:
        """The arrays that `series` names, shape (S, T), for a tape."""
        raise PluginError(f"sizing {self.name}: it names series and has no function compute_series")


class Execution(Component):
    """Meets orders with bars: the lane functions `fill`, and where they differ from `bellmark.market`, `quote` and `protect`.

    order_types: those that `fill` knows. needs: columns of the tape beside the bars. within_bar: whether the reference price of a fill lies
    between low and high of its bar; one that does not is then refused.
    """

    kind: ClassVar[str] = "execution"
    order_types: ClassVar[tuple[str, ...]] = ("market",)
    needs: ClassVar[tuple[str, ...]] = ()
    within_bar: ClassVar[bool] = True
    state: ClassVar[dict[str, str]] = {}


class Loss(Component):
    """A loss: the row functions `expected`, `target`, `loss_and_gradient` and `priority`."""

    kind: ClassVar[str] = "loss"

    def outputs(self) -> int:
        """Outputs of the network for each head column; 1 unless the loss learns a distribution."""
        return 1


class Trainer(Component):
    """An algorithm: `train(assembly, run, resume, progress)`."""

    kind: ClassVar[str] = "trainer"


class Strategy(Component):
    """A rule: the lane function `decide`, which returns the target exposure, and the new values of its `state` slots after it.

    series: names and types ("float64", "int64") of arrays that `compute_series` makes once for all bars of a tape and every distinct
    setting; `decide` asks for `NAME_T`. A value at bar t may depend on bars up to t alone. series_settings: the settings that it reads
    (None: all of them), so that settings which differ in others share one array.
    """

    kind: ClassVar[str] = "strategy"
    state: ClassVar[dict[str, str]] = {}
    series: ClassVar[dict[str, str]] = {}
    series_settings: ClassVar[tuple[str, ...] | None] = None

    def compute_series(self, tape: Any) -> dict[str, Any]:
        """The arrays that `series` names, shape (S, T), for a tape."""
        raise PluginError(f"strategy {self.name}: it names series and has no function compute_series")

    def matched(self, exposure_turnover: float) -> Strategy:
        """This strategy as the baseline of a policy with that mean change of exposure a bar; itself, unless it imitates turnover."""
        return self


class Metric(Component):
    """A number that describes a backtest: `compute(curve)`, and where it can be had without the curve `of_summary(summary)`.

    unit and convention are printed beside it; annualised metrics are null for spans under 30 days, those that need survival after ruin;
    position is the place in tables.
    """

    kind: ClassVar[str] = "metric"
    unit: ClassVar[str] = ""
    convention: ClassVar[str] = ""
    higher_is_better: ClassVar[bool | None] = None
    annualised: ClassVar[bool] = False
    needs_survival: ClassVar[bool] = False
    position: ClassVar[int] = 1000

    def compute(self, curve: Any) -> Any:
        """The value as a float, or Undefined with the reason."""
        raise PluginError(f"metric {self.name}: it has no function compute")

    def of_summary(self, summary: Any) -> Any:
        """The same value from the summary of an account, which a sweep keeps instead of its curve; None where that does not suffice."""
        return None


class Report(Component):
    """A way to write the report of a run: `write(content, folder)`."""

    kind: ClassVar[str] = "report"


class Tracker(Component):
    """Receives the statistics of a run while it trains: `start`, `log`, `finish`."""

    kind: ClassVar[str] = "tracker"


KINDS: dict[str, type[Component]] = {
    base.kind: base
    for base in (Dataset, Feature, Reward, ActionMask, Sizing, Execution, Loss, Trainer, Strategy, Metric, Report, Tracker)
}
KIND_NAMES = tuple(KINDS)


def hook_name(kind: str) -> str:
    """The hook that brings components of a kind: `bellmark_losses` for `loss`."""
    return "bellmark_" + ("losses" if kind == "loss" else "strategies" if kind == "strategy" else kind + "s")


def settings_of(cls: type[Component]) -> list[SettingInfo]:
    """The settings of a component class in the order of their declaration."""
    return list(_settings_of(cls))  # type: ignore[arg-type]


@lru_cache(maxsize=1024)  # a sweep asks for every configuration
def _settings_of(cls: type[Component]) -> tuple[SettingInfo, ...]:
    hints = typing.get_type_hints(cls)
    infos = []
    for name, field in getattr(cls, "__pydantic_fields__", {}).items():
        extra = field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {}
        kind = hints.get(name, field.annotation)
        default = None if field.is_required() else field.get_default(call_default_factory=True)
        infos.append(
            SettingInfo(
                name=name,
                type=kind,
                type_text=_type_text(kind),
                default=default,
                required=field.is_required(),
                meaning=field.description or "",
                unit=str(extra.get("unit", "")),
                static=bool(extra.get("static", False)),
                bounds=dict(typing.cast(Any, extra.get("bounds", {}))),
                choices=tuple(str(value) for value in typing.get_args(kind)) if typing.get_origin(kind) is Literal else (),
            )
        )
    return tuple(infos)


def json_schema(cls: type[Component]) -> dict[str, Any]:
    """The JSON schema of a component's settings."""
    from pydantic import TypeAdapter

    return TypeAdapter(cls).json_schema()


def make(cls: type[Component], values: dict[str, Any], where: str) -> Any:
    """An instance of a component from plain values, or one line that says which setting is wrong and why.

    Lists become tuples where the setting is a tuple; nothing else is converted: "2" is not 2 and 1 is not true.
    """
    infos = {info.name: info for info in settings_of(cls)}
    for key in values:
        if key not in infos:
            raise UsageError(f"{where}.{key}: {cls.kind} '{cls.name}' has no such setting{did_you_mean(key, infos)}{known_list(infos)}")
    given = {key: _as_declared(infos[key], value) for key, value in values.items()}
    for info in infos.values():
        if info.required and info.name not in given:
            raise UsageError(f"{where}.{info.name}: expected {info.expected}, found nothing: {info.meaning or 'it is required'}")
    from pydantic import ValidationError

    try:
        return cls(**given)
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else ""
        wrong = infos.get(name)
        if wrong is None:
            raise UsageError(f"{where}: {cls.kind} '{cls.name}': {_plain(first)}") from error
        value = list(first["input"]) if isinstance(first["input"], tuple) else first["input"]  # as it was written
        found = f"{type(value).__name__} {value!r}"
        rest = ".".join(str(part) for part in first["loc"])
        detail = f" ({_plain(first)})" if first["type"] in ("value_error", "assertion_error") else ""
        if detail.startswith(" (expected "):
            raise UsageError(f"{where}.{rest}: {_plain(first)}, found {found}") from error
        expected = _type_text(_element(wrong.type)) if any(isinstance(part, int) for part in first["loc"]) else wrong.expected
        raise UsageError(f"{where}.{rest}: expected {expected}, found {found}{detail}") from error
    except BellmarkError:
        raise
    except (TypeError, ValueError) as error:
        raise UsageError(f"{where}: {cls.kind} '{cls.name}': {error}") from error
    except (Exception, SystemExit) as error:
        raise PluginError(f"{where}: {cls.kind} '{cls.name}': its checks raised {type(error).__name__}: {error}") from error


def _element(kind: Any) -> Any:
    """What a list setting holds."""
    arguments = [part for part in typing.get_args(kind) if part is not Ellipsis]
    return arguments[0] if typing.get_origin(kind) is tuple and arguments else kind


def _plain(error: Any) -> str:
    return str(error["msg"]).removeprefix("Value error, ")


def _as_declared(info: SettingInfo, value: Any) -> Any:
    kinds = typing.get_args(info.type) if typing.get_origin(info.type) in (typing.Union, types.UnionType) else (info.type,)
    if isinstance(value, list) and any(typing.get_origin(kind) is tuple or kind is tuple for kind in kinds):
        return tuple(tuple(item) if isinstance(item, list) else item for item in value)
    return value


def _type_text(kind: Any) -> str:
    if kind is type(None):
        return "none"
    if typing.get_origin(kind) in (typing.Union, types.UnionType):
        return " or ".join(_type_text(part) for part in typing.get_args(kind))
    if typing.get_origin(kind) is Literal:
        return "one of " + ", ".join(repr(value) for value in typing.get_args(kind))
    if typing.get_origin(kind) is tuple:
        inner = [part for part in typing.get_args(kind) if part is not Ellipsis]
        return "list of " + (_type_text(inner[0]) if inner else "values")
    return getattr(kind, "__name__", str(kind))
