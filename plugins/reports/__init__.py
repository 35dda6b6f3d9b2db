"""The built-in report writers."""

from bellmark.plugins.reports.html import Html
from bellmark.plugins.reports.json import Json
from bellmark.plugins.reports.markdown import Markdown

REPORTS = [Html, Json, Markdown]
