"""What the code of a trial needs of the notebook's folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_autotrain.capture.differences import Difference
from jupyter_autotrain.capture.files.path_patterns import expression


@dataclass(slots=True)
class RequiredFiles:
    """What the code's calls need of the notebook's folder.

    Attributes:
        files: The files, by their path in the trial's folder.
        origins: Where the first call is that opens each of them.
        elsewhere: Files that do not travel with the code: those read by an absolute path, and the header's `data:`.
        folders: Folders that are made in a trial, empty as far as nothing travels into them.
        written: Places that the code may write to; parts may be unknown.
        notes: What would fail, as it would here.
        differences: What a trial does not have.
    """

    files: dict[str, Path] = field(default_factory=dict)
    origins: dict[str, str] = field(default_factory=dict)
    elsewhere: set[Path] = field(default_factory=set)
    folders: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)

    @property
    def all(self) -> list[Path]:
        """All files that are read."""
        return [*self.files.values(), *self.elsewhere]

    def add_all(self, files: Mapping[str, Path], origin: str) -> None:
        """Take in files that something else names."""
        for relative_path, path in files.items():
            self.files.setdefault(relative_path, path)
            self.origins.setdefault(relative_path, origin)

    def may_write(self, relative_path: str) -> bool:
        """Whether the code may write to a file that travels; where it writes is not always known."""
        return any(expression(one).fullmatch(relative_path) for one in self.written)
