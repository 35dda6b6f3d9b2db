"""The tables that say which buffers exist: fields of accounts, positions and orders under way, and what a step and a run write."""

from __future__ import annotations

TAPE_ARRAYS = ("ts", "open", "high", "low", "close", "volume", "session", "session_bar", "session_left", "session_fraction", "gap")

# Fields of an account and the roles of their buffers (name_LN). They are loaded before a step and stored after it.
ACCOUNT: dict[str, str] = {
    "cash": "money",
    "equity": "money",
    "peak_equity": "money",
    "gross": "money",
    "spread_cost": "money",
    "slippage_cost": "money",
    "fee_cost": "money",
    "funding_cost": "money",
    "rounding": "money",
    "fills": "counter",
    "refusals": "counter",
    "ruined": "flag",
}
# Fields of one symbol's position (name_LN, in a shared account name_LNS), with the rules that need them ("" = always).
POSITION: dict[str, tuple[str, str]] = {
    "position": ("lots", ""),
    "entry_price": ("state_float", ""),
    "held_exposure": ("exposure", ""),
    "bars_in_position": ("counter", ""),
    "standing": ("counter", ""),
    "working_target": ("lots", ""),
    "order_fees": ("money", ""),
    "order_charged": ("money", ""),
    "order_base": ("price", "decision_anchor"),
    "stop_price": ("price", "protect"),
    "target_price": ("price", "protect"),
    "trail_price": ("price", "trail"),
    "liquidate": ("counter", "maintenance"),
    "mark_price": ("price", "shared"),
    "sent_exposure": ("exposure", "latency"),
    "open_money": ("money", "summary"),
}
# An order between its decision and the bar in which it works: with a latency in the queue, in a shared account until the symbol's next bar.
PENDING: dict[str, str] = {
    "placed": "counter",
    "exposure": "exposure",
    "order_type": "counter",
    "urgency": "counter",
    "target_lots": "lots",
    "limit_price": "price",
    "base_price": "price",
    "point": "counter",
}
# What a step says of its bar (name_LN), written anew by each step. order_lots, reason: of the order that worked in it.
EVENTS: dict[str, str] = {
    "order_lots": "lots",
    "fill_lots": "lots",
    "fill_fee": "money",
    "reason": "index",
    "decided_exposure": "exposure",
    "point_equity": "money",  # at the close of t, after fills at that close
    "point_position": "lots",
}
# What a run keeps of each point of its curve (record_name_LNST): the point after bar k, and the decision at it.
RECORD: dict[str, str] = {
    "position": "lots",
    "order_lots": "lots",
    "reason": "index",
    "decided_exposure": "exposure",
    "mark_price": "price",
}
# What a run adds up for the metrics while it passes over the bars (summary_float_LNX, summary_int_LNX).
SUMMARY_FLOAT = (
    "return_sum", "return_sum_2", "return_sum_3", "return_sum_4", "loss_sum", "loss_sum_2", "max_drawdown", "traded_value", "equity_sum",
)  # fmt: skip
SUMMARY_INT = (
    "bars", "moving_bars", "losing_bars", "peak_bar", "valley_bar", "trades", "winning_trades", "losing_trades", "trade_gain",
    "trade_loss",
)  # fmt: skip
MARKET_SETTINGS = ("start_equity", "capital_floor")  # int64 nano-currency, the first columns of setting_int_GX
