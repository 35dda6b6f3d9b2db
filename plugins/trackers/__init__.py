"""The built-in trackers."""

from bellmark.plugins.trackers.jsonl import Jsonl

TRACKERS = [Jsonl]
