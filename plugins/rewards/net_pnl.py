"""Reward: profit and loss of the bar."""

from typing import ClassVar

from bellmark.component import Reward, component, setting


@component
class NetPnl(Reward):
    """Profit of the bar after all costs in units of `unit_currency`: (equity - previous_equity) / unit_currency.

    The difference is taken in integer nano-currency before it becomes a float, so it loses nothing at any size of the account.
    """

    name: ClassVar[str] = "net_pnl"
    unit_currency: float = setting(100.0, "profit that counts as a reward of 1", gt=0.0, unit="currency")

    @staticmethod
    def reward(equity, previous_equity, unit_currency):
        return (equity - previous_equity) / 1e9 / unit_currency
