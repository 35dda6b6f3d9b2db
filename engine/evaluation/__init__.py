"""Evaluation: equity curves, drawdowns, trades, metrics, and what may honestly be said about them. Needs numpy only."""
