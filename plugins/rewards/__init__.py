"""Rewards: what a policy is trained to collect."""

from bellmark.plugins.rewards.log_equity import LogEquity
from bellmark.plugins.rewards.net_pnl import NetPnl

REWARDS = [LogEquity, NetPnl]
