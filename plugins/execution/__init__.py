"""Execution models: how an order meets a bar."""

from bellmark.plugins.execution.bar import Bar

EXECUTIONS = [Bar]
