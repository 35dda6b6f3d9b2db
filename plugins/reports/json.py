"""The report as JSON."""

from pathlib import Path
from typing import Any, ClassVar

from bellmark.component import Report, component, setting


@component
class Json(Report):
    """The numbers of the report as sorted JSON: no NaN, no wall clock, the same bytes for the same inputs."""

    name: ClassVar[str] = "json"
    file: str = setting("report.json", "file name in the folder of the report")

    def write(self, content: dict[str, Any], folder: Path) -> Path:
        """Writes the file and returns its path."""
        from bellmark.files import write_json
        from bellmark.reporting import file_in

        path = file_in(folder, self.file)
        write_json(path, content)
        return path
