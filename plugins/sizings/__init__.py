"""Sizings: from an exposure to lots."""

from bellmark.component import Sizing
from bellmark.plugins.sizings.equity_fraction import EquityFraction
from bellmark.plugins.sizings.fixed_lots import FixedLots
from bellmark.plugins.sizings.volatility_target import VolatilityTarget

SIZINGS: list[type[Sizing]] = [EquityFraction, FixedLots, VolatilityTarget]
