"""Execution models: how an order meets a bar."""

from bellmark.component import Execution
from bellmark.plugins.execution.bar import Bar
from bellmark.plugins.execution.bar_quotes import BarQuotes
from bellmark.plugins.execution.impact import Impact
from bellmark.plugins.execution.zero_cost import ZeroCost

EXECUTIONS: list[type[Execution]] = [Bar, BarQuotes, Impact, ZeroCost]
