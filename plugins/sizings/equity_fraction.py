"""Sizing: a fraction of the equity."""

from typing import ClassVar

from bellmark.component import Sizing, component, setting
from bellmark.market import whole_lots


@component
class EquityFraction(Sizing):
    """Target = exposure * fraction * equity / symbols / value of one lot at the decision close, rounded towards zero.

    symbols: how many share the account, 1 unless market.account is "shared"; at full exposure of all of them the account holds `fraction`.
    With `fees` a lot counts with the fee of trading it (value * (1 + fee_bps) + fee_per_contract; the minimum of an order is left out), and
    where the position changes sides the fee of closing the old one is taken off the equity first.
    With `fraction` = 1 and a gap against the order the fill may still need more than the account has; it is then refused with its reason.
    No target is given for an account without equity or at a price that is not positive (the order is to go flat).
    """

    name: ClassVar[str] = "equity_fraction"
    fraction: float = setting(0.95, "share of the equity held at an exposure of 1", gt=0.0, le=10.0)
    fees: bool = setting(False, "keep room for the order's fee, so that fraction = 1 can be afforded at the decision close")

    @staticmethod
    def target(exposure, equity, price, position, value_numerator, value_denominator, fee_per_lot, fee_rate, symbols, fraction, fees):
        if equity <= 0 or price <= 0:
            return 0
        cost_of_lot = price * 1.0 * value_numerator / value_denominator
        free = equity * 1.0
        if fees:
            fee_of_lot = cost_of_lot * (fee_rate * 1e-9) + fee_per_lot
            if exposure * position < 0.0:
                free = max(free - abs(position) * fee_of_lot, 0.0)
            cost_of_lot = cost_of_lot + fee_of_lot
        return whole_lots(exposure * fraction * free / (cost_of_lot * symbols))
