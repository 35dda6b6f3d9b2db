"""Execution: the price moves against large orders."""

from typing import ClassVar

from bellmark.component import Execution, component, setting
from bellmark.market import largest_part, nearest
from bellmark.market import protect as protect_at
from bellmark.math import sqrt
from bellmark.plugins.execution.bar import Bar

_fill = Bar.fill


@component
class Impact(Execution):
    """As `bar`, with a slippage of market and ioc orders that grows with the square root of their share of the bar's volume.

    slippage = that of [market] + impact_bps * 1e-4 * |open| * sqrt(|lots| / volume), the second term rounded half away from zero to quanta
    and at most the price itself; lots is the part of the order that the participation lets fill in the bar, before it is cut to what the
    account can carry. A stop, a liquidation and the closing at the end of a window pay it too, on the whole position. Limit orders and
    targets wait for their price and pay none, a roll pays only what [market] says.
    A bar of unknown volume counts as if the order were all of it (impact_bps in full): an unknown cost is not a small one. A bar of zero
    volume fills nothing. The impact is gone in the next bar, so that an order in many parts pays less than it would.
    Source: the square-root law, as in Toth et al. (2011), "Anomalous price impact and the critical nature of liquidity".
    Differs: one coefficient in place of a constant times the volatility of the day.
    """

    name: ClassVar[str] = "impact"
    order_types: ClassVar[tuple[str, ...]] = ("market", "limit", "ioc")
    impact_bps: float = setting(10.0, "slippage of an order as large as the bar's volume", ge=0.0, le=10_000.0, unit="basis points")

    @staticmethod
    def fill(t, open_T, high_T, low_T, volume_T, order_lots, order_type, limit_price, participation, half_spread, slippage, slippage_rate,
             positive_only, impact_bps):  # fmt: skip
        lots = largest_part(order_lots, volume_T[t], participation)
        more = _impact(lots, volume_T[t], open_T[t], impact_bps)
        return _fill(t, open_T, high_T, low_T, volume_T, order_lots, order_type, limit_price, participation, half_spread, slippage + more,
                     slippage_rate, positive_only)  # fmt: skip

    @staticmethod
    def protect(t, position, stop_price, target_price, start_price, rested, target_at_open, open_T, high_T, low_T, close_T, volume_T,
                half_spread, slippage, slippage_rate, impact_bps):  # fmt: skip
        more = _impact(position, volume_T[t], open_T[t], impact_bps)
        return protect_at(t, position, stop_price, target_price, start_price, rested, target_at_open, open_T, high_T, low_T, close_T,
                          half_spread, slippage + more, slippage_rate)  # fmt: skip


def _impact(lots, volume, price, impact_bps):
    """Quanta a unit; `volume` in lots."""
    level = abs(price)
    share = 1.0
    if volume == volume:
        share = abs(lots) / volume if volume > 0.0 else 0.0
    return nearest(min(level * (impact_bps * 1e-4) * sqrt(share), level * 1.0))
