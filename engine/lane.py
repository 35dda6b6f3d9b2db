"""The generated lane step: one Python text that calls every lane function of a run, for training and backtests alike.

A lane is one account. The text is put together from blocks (`bellmark.lane_text`: decide, order, fill and book, stops, mark) around the
functions of the components, which are wired by parameter name. The same blocks make the kernels that advance all lanes by one bar
(training, learned policies), the kernel that runs a rule strategy over a whole window with the account in registers, and the kernel in
which one account trades several symbols. Only the rules that a run uses, and only the fields that the text then reads, are compiled in.

Arguments that a lane function may ask for by name:
  bars of the lane's symbol   open_T high_T low_T close_T (int64 quanta) volume_T (float64 lots, NaN unknown) ts_T session_T session_bar_T
                              session_left_T session_fraction_T gap_T, the columns of tape.EXTRA that the data have (bid_open_T ...), and t,
                              the bar whose close was just seen (in `fill` and `protect`: the working bar)
  account                     cash equity start_equity peak_equity (int64 nano-currency) position (int64 lots) entry_price (float64
                              quanta) bars_in_position held_exposure fills refusals gross spread_cost slippage_cost fee_cost funding_cost
                              symbols (in the account)
  instrument and costs        price_quantum (float64 currency) value_numerator value_denominator quanta_per_tick positive_only
                              half_spread slippage slippage_rate fee_per_lot fee_rate fee_minimum margin_per_lot margin_rate
  decision                    price (close of t) lane; in sizings, masks, executions and rewards also exposure order_type urgency, in the
                              last three target_lots, in the last two order_lots; in `fill` limit_price participation; in `protect`
                              stop_price target_price start_price rested target_at_open
  reward                      previous_equity previous_position fill_lots fill_fee; with a latency the exposure, order_type, urgency and
                              lots are those of the order that works in the bar
  and the component's own settings, state slots and series (`NAME_T`).
"""

from __future__ import annotations

from collections.abc import Sequence

from bellmark import market
from bellmark.lane_blocks import indent
from bellmark.lane_runs import LaneRuns
from bellmark.lane_steps import LANE_HEAD, kernel
from bellmark.lane_text import CLOSE_ANCHOR, CLOSING, GUARD, MARK_ACCOUNT, PEAK, POINT

_COST = {name: column for column, name in enumerate(market.COST_FIELDS)}


class LaneCode(LaneRuns):
    """Writes the text of every lane kernel; here the one in which one account trades several symbols."""

    def run_shared_text(self, arguments: Sequence[str]) -> str:
        """A rule strategy on several symbols of one account. The clock has a row for each stamp of any symbol: its bar, or -1 for none.

        At each stamp: every symbol with a bar works its order, in the order of the data; the account is marked, symbols without a bar at
        their last mark; every symbol with a bar decides at the account's equity.
        """
        assert self.parts.strategy is not None
        work, decide = self._shared_work_lines(), self._shared_decide_lines()
        record = [
            "record_equity_LNT[l, n, k] = equity",
            "for s in range(symbols):",
            "    record_position_LNST[l, n, s, k] = position_LNS[l, n, s]",
            "    record_mark_price_LNST[l, n, s, k] = mark_price_LNS[l, n, s]",
        ]
        new = [*self._new_position_lines(), *self._store_lines("LNS[l, n, s]", "position")]
        body = [
            *self._new_account_lines(),
            *self._summary_start_lines(),
            "for s in range(symbols):",
            *indent(new),
            "k = 0",
            "while k < clock_KS.shape[0] and ruined == 0:",
            *indent(["previous_equity = equity", "change = 0", "for s in range(symbols):"]),
            *indent(["u = clock_KS[k, s] + 0", "if u >= 0:"], 2),
            *indent([*self._symbol_lines(work), *self._load_lines("LNS[l, n, s]", "position"), *work], 3),
            *indent(self._store_lines("LNS[l, n, s]", "position"), 3),
            *indent(self._shared_mark_lines()),
            *(indent(record) if "record" in self.rules else []),
            "    if ruined == 0:",
            "        for s in range(symbols):",
            "            t = clock_KS[k, s] + 0",
            "            if t >= 0:",
            *indent([*self._symbol_lines(decide), *self._load_lines("LNS[l, n, s]", "position"), *decide], 4),
            *indent(self._store_lines("LNS[l, n, s]", "position"), 4),
            "    bar_LN[l, n] = k",
            "    k = k + 1",
            *self._summary_store_lines(),
            *self._store_lines(kinds="account"),
        ]
        head = [line for line in LANE_HEAD if not line.startswith("s = ")]
        s_free = ["s = 0", *self._symbol_lines(["start_equity capital_floor"]), f"symbols = {self.accounted}"]
        return kernel(arguments, [*head, *s_free, *body])

    def _shared_work_lines(self) -> list[str]:
        pending = self._pending
        record = []
        if "record" in self.rules:
            record = ["if order_lots != 0 or reason != 0:", "    record_order_lots_LNST[l, n, s, point] = order_lots"]
            record += ["    record_reason_LNST[l, n, s, point] = reason"]
        others = [
            "others = 0",
            "others_value = 0",
            "for j in range(symbols):",
            "    if j != s and position_LNS[l, n, j] != 0:",
            "        value_j = mul_div(position_LNS[l, n, j] * mark_price_LNS[l, n, j], instrument_SJ[j, 0], instrument_SJ[j, 1])",
            "        others_value = others_value + value_j",
            "        others = others + value_j - margin_need(",
            "            position_LNS[l, n, j], mark_price_LNS[l, n, j], instrument_SJ[j, 0], instrument_SJ[j, 1],",
            f"            cost_GSJ[g, j, {_COST['margin_per_lot']}], cost_GSJ[g, j, {_COST['margin_rate']}]",
            "        )",
        ]
        return [
            "last = last_S[s] + 0",
            *(f"{name} = {name}_0" for name in pending),
            "reason = FILLED",
            *self._bar_start_lines("mark_price"),
            f"if placed != 0 or standing == WORKING{self._values['DUE']}:",
            *indent(others),
            *indent(self._arrive_lines()),
            *([*self._block(GUARD, PROTECT=self._protect("u")), *self._block(CLOSE_ANCHOR)] if "protect" in self.rules else []),
            *self._block(CLOSING),
            # Marked at the close only when every symbol has worked: an order at an open cannot be paid by a close that comes after it.
            "mark_price = mark",
            "bars_in_position = bars_in_position + 1 if position != 0 else 0",
            "placed_0 = 0",
            *record,
        ]

    def _shared_mark_lines(self) -> list[str]:
        close = ["mark = mark_price", f"part = {self._values['MOVED']}", "gross = gross + part", "change = change + part"]
        close += [f"mark_price_LNS[l, n, s] = {self._values['MARK_U']}"]
        fields = ["position = position_LNS[l, n, s]", "mark_price = mark_price_LNS[l, n, s]"]
        lines = [
            "for s in range(symbols):",
            "    u = clock_KS[k, s] + 0",
            "    if u >= 0:",
            *indent([*self._symbol_lines(close), *fields, *close], 2),
            "equity = cash + 0",
            "for s in range(symbols):",
            "    equity = equity + mul_div(position_LNS[l, n, s] * mark_price_LNS[l, n, s], instrument_SJ[s, 0], instrument_SJ[s, 1])",
            *self._block(MARK_ACCOUNT),
            *self._block(PEAK),
        ]
        if "summary" in self.rules:
            lines += ["if k != 0:", *indent([*self._block(POINT, POINT_BAR="k"), "bars = bars + 1"])]
        if "maintenance" in self.rules:
            lines += [
                "need = 0",
                "for s in range(symbols):",
                "    need = need + margin_need(",
                "        position_LNS[l, n, s], mark_price_LNS[l, n, s], instrument_SJ[s, 0], instrument_SJ[s, 1],",
                f"        cost_GSJ[g, s, {_COST['maintenance_per_lot']}], cost_GSJ[g, s, {_COST['maintenance_rate']}]",
                "    )",
                "for s in range(symbols):",
                "    liquidate_LNS[l, n, s] = 1 if equity < need and position_LNS[l, n, s] != 0 else 0",
            ]
        return lines

    def _shared_decide_lines(self) -> list[str]:
        assert self.parts.strategy is not None
        decide = self._stateful_call(self.parts.strategy, "decide", {"price": self._values["MARK_T"]}, "exposure")
        lines = ["lane = s + 0", *self._rule_order_lines(), decide, "decided_exposure = exposure"]
        lines.append("point = k + 0")
        record = []
        if "record" in self.rules:
            record = ["record_decided_exposure_LNST[l, n, s, k] = decided_exposure"]
        last = [line for line in self._last_lines()[len(self._decide_lines()) :]]
        unfilled = []
        if "record" in self.rules:
            unfilled = ["if reason != 0:", "    record_reason_LNST[l, n, s, k] = reason"]
        return [
            *lines,
            *self._decide_lines(),
            *record,
            *unfilled,
            *(f"{name}_0 = {name}" for name in self._pending),
            "if t >= last_S[s]:",
            *indent([*last, "placed_0 = 0"]),
        ]
