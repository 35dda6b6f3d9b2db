"""The report as Markdown: the headline, the tables and the provenance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bellmark.reporting import tables
from bellmark.reporting.tables import Table

SPECIAL = "\\`*_{}[]<>#|!&~"


def markdown_text(content: Mapping[str, Any]) -> str:
    """The whole document. Names are escaped, so that they cannot become markup."""
    verdict = content["verdict"]
    parts = [f"# Bellmark report: {escaped(content['title'])}", f"**{escaped(verdict['sentence'])}**", escaped(verdict["caveat"])]
    if content["cautions"]:
        parts += ["## Better than life", "\n".join(f"- **{escaped(text)}**" for text in content["cautions"])]
    if content["warnings"]:
        parts += ["## Warnings", "\n".join(f"- {escaped(text)}" for text in content["warnings"])]
    trades = tables.trade_list(content)
    found = [
        tables.metric_table(content),
        tables.convention_table(content),
        tables.chart_table(content, "equity", f"Equity ({content['currency']})"),
        tables.month_table(content),
        tables.drawdown_table(content),
        tables.cost_table(content),
        tables.cause_table(content),
        tables.rejection_table(content),
        tables.open_table(content),
        tables.trade_summary_table(content),
        *([trades] if trades is not None else []),
        *([tables.action_table(content)] if content["actions"]["rows"] else []),
        *(tables.training_table(chart) for chart in content["training"]["charts"]),
        tables.rule_table(content),
        tables.provenance_table(content),
    ]
    parts += [_section(table) for table in found]
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """Text with every character of Markdown's own escaped, on one line."""
    return "".join(f"\\{letter}" if letter in SPECIAL else letter for letter in " ".join(text.split()))


def _section(table: Table) -> str:
    lines = [f"## {escaped(table.title)}"]
    if table.rows:
        aligned = ["---" if k == 0 or k in table.text_columns else "---:" for k in range(len(table.head))]
        rows = [table.head, *table.rows]
        cells = ["| " + " | ".join(escaped(cell) for cell in row) + " |" for row in rows]
        lines.append("\n".join([cells[0], "| " + " | ".join(aligned) + " |", *cells[1:]]))
    if table.notes:
        lines.append("\n".join(f"- {escaped(note)}" for note in table.notes))
    return "\n\n".join(lines)
