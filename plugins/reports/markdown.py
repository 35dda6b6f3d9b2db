"""The report as Markdown."""

from pathlib import Path
from typing import Any, ClassVar

from bellmark.component import Report, component, setting


@component
class Markdown(Report):
    """The headline and the tables of the report as Markdown, for reviews and issue trackers."""

    name: ClassVar[str] = "markdown"
    file: str = setting("report.md", "file name in the folder of the report")

    def write(self, content: dict[str, Any], folder: Path) -> Path:
        """Writes the file and returns its path."""
        from bellmark.files import write_atomically
        from bellmark.reporting import file_in
        from bellmark.reporting.markdown import markdown_text

        path = file_in(folder, self.file)
        write_atomically(path, markdown_text(content))
        return path
