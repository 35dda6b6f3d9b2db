"""The kernel that runs a rule strategy over the window of each lane, with the account in registers."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bellmark.lane_blocks import indent
from bellmark.lane_fields import SUMMARY_FLOAT, SUMMARY_INT
from bellmark.lane_steps import LANE_HEAD, LaneSteps, kernel
from bellmark.lane_text import POINT, QUIET

_BUSY_RULES = frozenset(
    ("always", "flat_by_close", "latency", "same_close", "trail", "halts", "funding", "roll", "shared", "record")
)  # with them a bar may do something without an order
_SUMS = r"\b(gross|peak_equity|bars_in_position)\b"  # brought up to date after quiet bars


class LaneRuns(LaneSteps):
    """A rule strategy on one symbol."""

    def run_text(self, arguments: Sequence[str]) -> str:
        """A rule strategy over the window of each lane, bar by bar, with the account in registers."""
        assert self.parts.strategy is not None
        decide = self._stateful_call(self.parts.strategy, "decide", {"price": self._values["MARK_T"]}, "exposure")
        same = "same_close" in self.rules
        begin = [*self._rule_order_lines(), decide, "decided_exposure = exposure"]
        point = [*self._block(POINT), "bars = bars + 1"] if "summary" in self.rules else []
        if same:
            loop = [*self._decide_lines(), *self._same_close_lines()]
            loop += [*self._record_lines("t - first"), *self._point_record_lines("t - first", "t")]
            loop += ["if t != first:", *indent(point)] if point else []
            bar = ["u = t + 1", *self._bar_lines(), *self._point_record_lines("u - first")]
            loop += ["u = t", "if ruined == 0:", *indent(bar)]
        else:
            loop = ["u = t + 1", *self._bar_lines(self._order_lines()), *self._record_lines("t - first"), *point]
            loop += self._point_record_lines("u - first")
        loop += ["t = u", "if ruined == 0:", *indent(begin)]
        if self._has_quiet_bars(decide):
            loop = [*self._quiet_lines(decide), "if t < last:", *indent(loop)]
        body = [
            *self._new_account_lines(),
            *self._new_position_lines(),
            "first = bar_LN[l, n] + 0",
            "last = end_bar_LN[l, n] + 0",
            *self._summary_start_lines(),
            *self._point_record_lines("0", "first"),
            "t = first",
            *begin,
            "while t < last and ruined == 0:",
            *indent(loop),
            "u = t",
            "bar_LN[l, n] = t",
            "if ruined == 0:",
            *indent(self._last_lines()),
            *indent(["if t != first:", *indent(point)] if same and point else []),
            *indent([*self._record_lines("t - first"), *(self._point_record_lines("t - first", "t") if same else [])]),
            *(["elif t != first:", *indent(point)] if same and point else []),
            *self._summary_store_lines(),
        ]
        # The symbol, not the place among all lanes: a rule draws the same numbers alone, in a sweep and in a second run.
        inner = ["lane = s + 0", *self._symbol_lines(body), *body, *self._store_lines()]
        return kernel(arguments, [*LANE_HEAD, *inner])

    def _has_quiet_bars(self, decide: str) -> bool:
        """Whether bars without orders and fills may run in loops of their own: no rule does more in them, and the decision reads no sum."""
        return "summary" in self.rules and not self.rules & _BUSY_RULES and not re.search(_SUMS, decide)

    def _quiet_lines(self, decide: str) -> list[str]:
        return self._block(
            QUIET,
            DECIDE=decide,
            QUIET_END="last - 1" if "close_at_end" in self.rules else "last",
            NOT_DUE=" and liquidate == 0" if "maintenance" in self.rules else "",
            PROTECT=self._protect("u") if "protect" in self.rules else "",
            MAINTENANCE="maintenance_per_lot, maintenance_rate" if "maintenance" in self.rules else "0, 0",
            POINT="\n".join(self._block(POINT)),
        )

    def _order_lines(self) -> list[str]:
        """Decision and order of a bar. Most bars ask for what is held and have no order: one comparison tells them apart."""
        lines = [*self._decide_lines(), *self._arrive_lines()]
        if self.rules & {"always", "flat_by_close", "latency"}:
            return lines
        due = self._values["DUE"]
        return ["reason = FILLED", f"if unlikely(exposure != held_exposure or standing != 0{due}):", *indent(lines)]

    def _rule_order_lines(self) -> list[str]:
        return [f"order_type = {self.rule_order[0]}", f"urgency = {self.rule_order[1]}"]

    def _summary_start_lines(self) -> list[str]:
        if "summary" not in self.rules:
            return []
        zeros = [f"{name} = 0.0" for name in SUMMARY_FLOAT] + [f"{name} = 0" for name in SUMMARY_INT]
        starts = [f"{name} = start_equity" for name in ("point_equity", "highest", "lowest")]
        return [*zeros, *starts, "highest_bar = 0", "equity_sum = equity_sum + start_equity"]

    def _summary_store_lines(self) -> list[str]:
        if "summary" not in self.rules:
            return []
        lines = [f"summary_float_LNX[l, n, {column}] = {name}" for column, name in enumerate(SUMMARY_FLOAT)]
        return lines + [f"summary_int_LNX[l, n, {column}] = {name}" for column, name in enumerate(SUMMARY_INT)]

    def _record_lines(self, point: str) -> list[str]:
        """The decision at a point; with a latency the order that worked now was decided earlier."""
        if "record" not in self.rules:
            return []
        s = "s" if "shared" in self.rules else "0"
        lines = [f"record_decided_exposure_LNST[l, n, {s}, {point}] = decided_exposure"]
        late = self.latency - 1
        at = f"{point} - {late}" if late else point
        outcome = [f"record_order_lots_LNST[l, n, {s}, {at}] = order_lots", f"record_reason_LNST[l, n, {s}, {at}] = reason"]
        return lines + ([f"if {point} >= {late} and (order_lots != 0 or reason != 0):", *indent(outcome)] if late else outcome)

    def _point_record_lines(self, point: str, bar: str = "u") -> list[str]:
        if "record" not in self.rules:
            return []
        mark = self._values["MARK_T" if bar == "t" else "MARK_U"] if bar in ("t", "u") else f"close_T[{bar}]"
        return [
            f"record_equity_LNT[l, n, {point}] = equity",
            f"record_position_LNST[l, n, 0, {point}] = position",
            f"record_mark_price_LNST[l, n, 0, {point}] = {mark}",
        ]
