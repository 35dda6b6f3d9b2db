"""The kernels that advance all lanes by one bar: step, advance, begin, finish (training, learned policies)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bellmark.lane_blocks import LaneBlocks, indent
from bellmark.lane_fields import EVENTS
from bellmark.lane_text import DECIDED, select

LANE_HEAD = ["l = i // lanes", "n = i - l * lanes", "lane = n", "s = symbol_LN[l, n]", "g = group_LN[l, n]"]


class LaneSteps(LaneBlocks):
    """Kernels whose host says what every lane does in each bar."""

    def step_text(self, arguments: Sequence[str]) -> str:
        """All lanes by one bar: action -> order -> fill -> mark -> reward -> observation of the next bar."""
        body = [*LANE_HEAD, "if ruined_LN[l, n] == 0 and bar_LN[l, n] < end_bar_LN[l, n]:", *indent(self._whole_step_lines())]
        return kernel(arguments, body)

    def _whole_step_lines(self) -> list[str]:
        same = "same_close" in self.rules
        body = [
            "t = bar_LN[l, n] + 0",
            "u = t + 1",
            "last = end_bar_LN[l, n] + 0",
            "exposure = exposure_A[action_LN[l, n]]",
            "order_type = order_type_A[action_LN[l, n]] + 0",
            "urgency = urgency_A[action_LN[l, n]] + 0",
            "decided_exposure = exposure",
            *self._decide_lines(),
            *(["equity_before = equity", *self._same_close_lines()] if same else []),
            "point_equity = equity",
            "point_position = position",
            *(["if ruined == 0:", *indent(self._bar_lines()), "else:", "    u = t"] if same else self._bar_lines(self._arrive_lines())),
            *(["order_lots = worked_lots", "reason = worked_reason", "previous_equity = equity_before"] if same else []),
            *self._reward_lines(),
            *(f"{name}_LN[l, n] = {name}" for name in EVENTS),
            "reward_LN[l, n] = float32(reward)",
            "next_bar_LN[l, n] = u",
            "terminated_LN[l, n] = ruined",
            "truncated_LN[l, n] = 1 if ruined == 0 and u >= end_bar_LN[l, n] else 0",
            *self._observe_lines("u", "next_"),
        ]
        return [*self._symbol_lines(body), *self._load_lines(), *body, *self._store_lines()]

    def advance_text(self, arguments: Sequence[str]) -> str:
        """Lanes that go on take over the next observation; lanes that ended begin a new episode at a bar drawn for them."""
        self.symbols |= _episode_symbols()
        body = [
            *LANE_HEAD,
            "if terminated_LN[l, n] == 0 and truncated_LN[l, n] == 0:",
            "    bar_LN[l, n] = next_bar_LN[l, n]",
            "    for p in range(portfolio_LNP.shape[2]):",
            "        portfolio_LNP[l, n, p] = next_portfolio_LNP[l, n, p]",
            "    for a in range(allowed_LNA.shape[2]):",
            "        allowed_LNA[l, n, a] = next_allowed_LNA[l, n, a]",
            "else:",
            *indent(self._new_episode_lines()),
        ]
        return kernel(arguments, body)

    def _new_episode_lines(self) -> list[str]:
        return [
            "ruined_lanes_LN[l, n] = ruined_lanes_LN[l, n] + terminated_LN[l, n]",
            "seed, number = control_int_LC[l, SEED], episode_LN[l, n]",
            "symbol, start, end = draw_episode(seed, n, number, window_start_LS[l], window_end_LS[l], episode_bars)",
            "episode_LN[l, n] = episode_LN[l, n] + 1",
            "symbol_LN[l, n] = symbol",
            "bar_LN[l, n] = start",
            "end_bar_LN[l, n] = end",
            *self._begin_lines(),
        ]

    def begin_text(self, arguments: Sequence[str]) -> str:
        """New accounts at the symbol and bar that the host has set (backtests)."""
        return kernel(arguments, [*LANE_HEAD, *self._begin_lines()])

    def _begin_lines(self) -> list[str]:
        body = ["t = bar_LN[l, n] + 0", *self._new_account_lines(), *self._new_position_lines(), *self._observe_lines("t", "")]
        return ["s = symbol_LN[l, n]", "g = group_LN[l, n]", *self._symbol_lines(body), *body, *self._store_lines()]

    def finish_text(self, arguments: Sequence[str]) -> str:
        """The decision at the last bar of a window: its order and those under way are listed as unfilled; at the same close it fills."""
        body = [
            "t = bar_LN[l, n] + 0",
            "u = t",
            "exposure = exposure_A[action_LN[l, n]]",
            "order_type = order_type_A[action_LN[l, n]] + 0",
            "urgency = urgency_A[action_LN[l, n]] + 0",
            "decided_exposure = exposure",
            *self._last_lines(),
            "point_equity = equity",
            "point_position = position",
            *(f"{name}_LN[l, n] = {name}" for name in EVENTS if name not in ("fill_lots", "fill_fee")),
        ]
        inside = [*self._symbol_lines(body), *self._load_lines(), *body, *self._store_lines()]
        return kernel(arguments, [*LANE_HEAD, "if ruined_LN[l, n] == 0:", *indent(inside)])

    def _last_lines(self) -> list[str]:
        lines = self._decide_lines()
        if {"same_close", "close_at_end"} <= self.rules:
            return [*lines, "order_lots = 0"]  # the window is closed: its last decision trades no more
        if "same_close" in self.rules:
            row = "append(ledger_LNEJ, ledger_count_LN, l, n, t, s, REFUSED, LAST_BAR, working_target - position, close_T[t], 0, 0, 0, 0)"
            rest = ["if standing == WORKING and working_target != position:", f"    {row}"]
            return [*lines, *self._same_close_lines(), *(rest if "ledger" in self.rules else [])]
        lines += select(DECIDED, self.rules, {})
        if "ledger" in self.rules:
            # Each at the bar that decided it: the order that would work next, then those behind it in the queue.
            late = self.latency - 1
            row = "append(ledger_LNEJ, ledger_count_LN, l, n, t - {1}, s, REFUSED, LAST_BAR, {0}, close_T[t], 0, 0, 0, 0)"
            lines += ["if order_lots != 0:", f"    {row.format('order_lots', f'({late} if placed != 0 else 0)' if late else 0)}"]
            for place in range(1, self.latency):
                lines += [
                    f"if placed_{place} != 0 and target_lots_{place} != position:",
                    f"    {row.format(f'target_lots_{place} - position', late - place)}",
                ]
        return lines


def _episode_symbols() -> dict[str, Any]:
    from bellmark.control import INT
    from bellmark.environment import draw_episode

    return {"draw_episode": draw_episode, "SEED": INT["seed"]}


def kernel(arguments: Sequence[str], body: Sequence[str]) -> str:
    head = [f"def entry(learners, lanes, {', '.join(arguments)}):", "    for i in prange(learners * lanes):"]
    return "\n".join([*head, *indent(body, 2), ""])
