"""Stages and steps: a step is a checked list of launches over registry buffers; it allocates nothing while it runs.

The CUDA backend captures the same list in one graph, so a launch reads and writes only the buffers that it names, takes every scalar that
can change from the control block, and never looks at the host.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bellmark.buffers import BufferRegistry
from bellmark.errors import BellmarkError, InternalError, PluginError


@dataclass(frozen=True)
class Stage:
    """One launch. `arguments` are buffer names or plain numbers (fixed shapes only); `plugin` names who wrote the function."""

    name: str
    launch: Callable[..., Any]
    arguments: tuple[Any, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    plugin: str = ""


class Step:
    """A list of stages bound to the buffers of a registry.

    At construction: every buffer exists, everything read was given or written before it is read, every buffer has one writer (a stage that
    also reads what it writes updates it in place, which may happen more than once), and every argument is named in reads or writes.
    """

    def __init__(self, registry: BufferRegistry, stages: Sequence[Stage], given: Iterable[str] = ()) -> None:
        self.registry = registry
        self.stages = tuple(stages)
        self.generation = registry.generation
        self._check(set(given))
        self._bound = tuple((stage, stage.launch, self._bind(stage)) for stage in self.stages)

    def _check(self, known: set[str]) -> None:
        writer: dict[str, str] = {}
        for stage in self.stages:
            for name in (*stage.reads, *stage.writes):
                self.registry.buffer(name)
            for name in stage.reads:
                if name not in known:
                    raise InternalError(f"stage '{stage.name}': it reads '{name}', which nothing before it writes")
            for name in stage.writes:
                if name not in stage.reads:
                    if name in writer:
                        raise InternalError(f"stage '{stage.name}': it writes '{name}', which '{writer[name]}' writes already")
                    writer[name] = stage.name
                known.add(name)
            for argument in stage.arguments:
                if isinstance(argument, str) and argument not in stage.reads and argument not in stage.writes:
                    raise InternalError(f"stage '{stage.name}': argument '{argument}' is neither in its reads nor in its writes")

    def _bind(self, stage: Stage) -> tuple[Any, ...]:
        return tuple(self.registry[argument] if isinstance(argument, str) else argument for argument in stage.arguments)

    def run(self, times: int = 1) -> None:
        """Runs the stages in order, `times` over."""
        if self.registry.generation != self.generation:
            raise InternalError("step: its arena was released or allocated again; build the step anew")
        for _ in range(times):
            for stage, launch, arguments in self._bound:
                try:
                    launch(*arguments)
                except BellmarkError:
                    raise
                except Exception as error:
                    raise stage_error(stage, error) from error

    def plan(self) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
        """Name, reads and writes of each stage, for tests and `doctor`."""
        return [(stage.name, stage.reads, stage.writes) for stage in self.stages]


def stage_error(stage: Stage, error: Exception) -> BellmarkError:
    """One line that names the stage and, if a plugin's function runs in it, the plugin."""
    from bellmark.codegen import compile_error

    where = f"stage '{stage.name}'" + (f" of plugin '{stage.plugin}'" if stage.plugin else "")
    if type(error).__module__.startswith("numba."):
        return compile_error(error, where)
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename != __file__]
    place = f" ({places[-1].filename}, line {places[-1].lineno})" if places else ""
    text = f"{where}: {type(error).__name__}: {error}{place}"
    return PluginError(text) if stage.plugin else InternalError(text)
