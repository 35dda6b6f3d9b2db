"""The report as one HTML file."""

from pathlib import Path
from typing import Any, ClassVar

from bellmark.component import Report, component, setting


@component
class Html(Report):
    """One offline HTML file with charts and tables; light and dark, wide and narrow, on paper."""

    name: ClassVar[str] = "html"
    file: str = setting("report.html", "file name in the folder of the report")

    def write(self, content: dict[str, Any], folder: Path) -> Path:
        """Writes the file and returns its path."""
        from bellmark.files import write_atomically
        from bellmark.reporting import file_in
        from bellmark.reporting.html import html_text

        path = file_in(folder, self.file)
        write_atomically(path, html_text(content))
        return path
