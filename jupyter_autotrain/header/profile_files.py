"""Profiles as files define them: the user's `backends.yaml`, and `backends:` of the project's `autotrain.yaml`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from jupyter_autotrain.header.document import Document
from jupyter_autotrain.header.faults import KeyPath, SourceLocation

USER_FILE: Final = "backends.yaml"
DEFINITIONS: Final = "backends"  # the key of a project file that holds profiles


@dataclass(frozen=True, slots=True)
class Definition:
    """A profile as a file defines it, not checked yet.

    Attributes:
        name: The profile's.
        settings: What stands under it; a mapping where it is right.
        path: Where that is in the document.
        document: The whole file.
        file: Its path.
        hides: The definition of the same name in a file that counts less.
        is_trusted: Whether it counts: the user's own do, those of a project once its file is trusted.
    """

    name: str
    settings: object
    path: KeyPath
    document: Document
    file: Path
    hides: Definition | None = None
    is_trusted: bool = True

    @property
    def location(self) -> SourceLocation:
        """Where it stands, for people."""
        return self.document.location(self.path)


def defined_in(document: Document, path: KeyPath, file: Path) -> dict[str, Definition]:
    """The profiles that a file defines, by name.

    Args:
        document: The file, read.
        path: The mapping of the profiles in it; one that is no mapping defines none.
        file: The file's path.
    """
    found: object = document.data
    for part in path:
        found = found.get(str(part)) if isinstance(found, dict) else None
    if not isinstance(found, dict):
        return {}
    return {name: Definition(name, settings, (*path, name), document, file) for name, settings in found.items()}
