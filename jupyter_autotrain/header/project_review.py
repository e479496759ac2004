"""The effects of a project's file, for its reader to look at and to agree to; see `project_trust`."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from jupyter_autotrain.errors import AutotrainError, BackendError
from jupyter_autotrain.header import project_trust, settings_files
from jupyter_autotrain.header.config_sources import HeaderContext
from jupyter_autotrain.header.document import Document, resolve
from jupyter_autotrain.header.profiles import DEFINITIONS


@dataclass(frozen=True, slots=True)
class ProjectReview:
    """A project's file as it is now.

    Attributes:
        path: The file.
        shown: Its path for people.
        digest: Of it and of the files of the project that it names.
        is_trusted: Whether its reader has agreed to it already.
        effects: One line for each place and setting that needs trust, and one for the files that it names.
    """

    path: Path
    shown: str
    digest: str
    is_trusted: bool
    effects: tuple[str, ...]


def review(context: HeaderContext) -> ProjectReview:
    """Look at the project's file that counts in a folder.

    Raises:
        AutotrainError: There is none, or it cannot be read.
    """
    project = _project_file(context)
    document = context.read(project)
    shown = context.shown(project)
    try:
        content_digest = project_trust.digest(project, document.data)
        named = settings_files.of_settings(project, document.data)
    except OSError as error:
        raise AutotrainError(
            f"{shown} cannot be read: {error.strerror}.", "A small file of settings.", "Look at it by hand."
        ) from None
    effects = tuple(map(_plain, _effects(project, document, named)))
    return ProjectReview(project, shown, content_digest, context.is_trusted(project, document), effects)


def agree(context: HeaderContext, digest: str) -> Path:
    """Keep that the user agrees to the project's file that had this digest when it was looked at.

    Returns:
        Where that is kept.

    Raises:
        AutotrainError: There is no such file, or it is another one by now.
        BackendError: It cannot be kept.
    """
    found = review(context)
    if found.digest != digest:
        raise AutotrainError(
            f"{found.shown} has changed: its digest is {found.digest}, not {digest[:40]}.",
            "The digest of the file as you have seen it.",
            f"Look at it again: {project_trust.COMMAND}",
        )
    folder = context.config_folder()
    if folder is None:
        raise BackendError(
            "There is no folder of yours to keep it in.", "HOME or JUPYTER_CONFIG_DIR.", "Set one of them."
        )
    try:
        return project_trust.trust(found.path, digest, folder)
    except OSError as error:
        raise BackendError(
            f"{folder} cannot be written: {error.strerror}.", "A folder of your own.", "Check its mode and disk."
        ) from None


def _project_file(context: HeaderContext) -> Path:
    if project := context.project_file():
        return project
    unsafe = context.unsafe_project_files()
    found = f"{context.shown(unsafe[0][0])} does not count: {unsafe[0][1]}." if unsafe else "There is no project file."
    raise AutotrainError(
        found,
        "autotrain.yaml in this folder or above it, which only you and root can write.",
        "Go to the project's folder, or take the file over.",
    )


def _effects(project: Path, document: Document, named: list[Path]) -> Iterator[str]:
    profiles = document.data.get(DEFINITIONS)
    for name, settings in profiles.items() if isinstance(profiles, Mapping) else ():
        yield f"place {name}: {_text(settings)}"
    for key, value in document.data.items():
        if key != DEFINITIONS and key not in project_trust.FREE_KEYS:
            yield f"{key}: {_text(value)}"
    if named:
        root = project.parent.resolve()
        yield f"files of the project that it names: {', '.join(str(file.relative_to(root)) for file in named)}"


def _text(value: object) -> str:
    return json.dumps(resolve(value), default=str, ensure_ascii=False)


def _plain(text: str) -> str:
    """Return the text with each character spelled out that is not seen, or that turns the direction of the others."""
    return "".join(f"\\u{ord(one):04x}" if unicodedata.category(one)[0] in "CZ" and one != " " else one for one in text)
