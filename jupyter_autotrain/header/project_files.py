"""Settings of project files: what of them counts, and what is said of the rest."""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from jupyter_autotrain.header import project_trust
from jupyter_autotrain.header.aliases import canonical
from jupyter_autotrain.header.document import Document, Fault, shown
from jupyter_autotrain.header.profiles import Definition
from jupyter_autotrain.header.project_trust import BUILT_IN

FILE_NAME: Final = "autotrain.yaml"
_HOOKS = "hooks"


def with_projects(
    own: Mapping[str, Definition], nearer: Mapping[str, Definition], *, is_trusted: bool
) -> dict[str, Definition]:
    """Add a project's profiles; those of a file that is not trusted yet hide nobody's, and none is a built-in place."""
    found = dict(own)
    for name, definition in nearer.items():
        if name not in BUILT_IN and (is_trusted or name not in own):
            found[name] = replace(definition, hides=own.get(name), is_trusted=is_trusted)
    return found


def built_in(definitions: Mapping[str, Definition]) -> list[Fault]:
    """Return what is said of built-in places that a project's file defines anew."""
    return [
        Fault(
            f"`{name}` of a project's {FILE_NAME} does not count: it is a built-in place",
            "expected another name",
            "rename it",
            definitions[name].location,
        )
        for name in BUILT_IN
        if name in definitions
    ]


def not_counted(path: str, why: str) -> Fault:
    """Return what is said of a file that somebody else can have written."""
    return Fault(
        f"{path} does not count: {why}",
        "expected a file and folders that only you and root can write",
        "take them over, or copy the file into a folder of your own",
    )


def without_hooks(document: Document) -> Document:
    """Leave hooks out: a project's file comes with the folder, runs no command and sends nothing anywhere."""
    if _HOOKS not in document.data:
        return document
    fault = Fault(
        f"`{_HOOKS}:` in a project's {FILE_NAME}",
        f"expected hooks in your own {FILE_NAME} or in the cell",
        "move them there",
        document.location((_HOOKS,)),
    )
    return _without(document, {_HOOKS}, fault)


def until_trusted(document: Document, keys: Collection[str]) -> Document:
    """Leave out what a project's file may say only once its reader has agreed to it; one fault names it.

    Args:
        document: The file's settings.
        keys: All keys of a header; other ones are faults of their own.
    """
    given = canonical(document)
    held = [key for key in given.data if key in keys and key not in project_trust.FREE_KEYS]
    if not held:
        return document
    fault = Fault(
        f"{', '.join(f'`{key}`' for key in held)} of a project's {FILE_NAME} that is not trusted yet",
        "expected a file that you have looked at: it comes with the folder",
        f"see what it would do: {project_trust.COMMAND}",
        document.location((held[0],)),
    )
    return _without(Document(given.data, document.locations, document.faults), held, fault)


def naming_inside(document: Document, project: Path, cwd: Path) -> Document:
    """Leave out what of a project's file a link leads out of the project: the file's reader sees no link.

    Args:
        document: The file's settings, in the schema's own spelling.
        project: Its folder.
        cwd: The notebook's folder, to which the patterns of `ship:` refer.
    """
    for key, text, folder in _named(document.data, project, cwd):
        if _leads_out(folder / text, project):
            fault = Fault(
                f"`{key}:` {shown(text)} of a project's {FILE_NAME} leads out of the project",
                "expected files inside of it, links followed",
                "name them in the cell, or copy them there",
                document.location((key,)),
            )
            return _without(document, {key}, fault)
    return document


def _named(data: Mapping[str, object], project: Path, cwd: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield the files here that settings name, where no reader sees where they lead: key, text, folder."""
    ship = data.get("ship")
    for pattern in _texts(ship.get("files") if isinstance(ship, Mapping) else ship):
        if not pattern.startswith("!"):
            yield "ship", pattern, cwd
    entries = data.get("data")
    for entry in entries.values() if isinstance(entries, Mapping) else ():
        for text in _texts(entry.get("send") if isinstance(entry, Mapping) else entry):
            yield from _relative("data", text, project)
    environment = data.get("environment")
    for text in _texts(environment.get("requirements") if isinstance(environment, Mapping) else None):
        yield from _relative("environment", text, project)


def _relative(key: str, text: str, folder: Path) -> Iterator[tuple[str, str, Path]]:
    if not text.startswith(("/", "~")):  # the file itself says where these lead
        yield key, text, folder


def _texts(given: object) -> list[str]:
    """Return the texts of a text or a list of them, numbers as they are written too."""
    items = given if isinstance(given, list | tuple) else [given]
    return [item for item in items if isinstance(item, str)]


def _leads_out(path: Path, project: Path) -> bool:
    try:
        return _is_circle_of_links(path) or not path.resolve().is_relative_to(project.resolve())
    except (OSError, ValueError, RuntimeError):
        return True


def _is_circle_of_links(path: Path) -> bool:
    """Return whether links lead from a path back to it: from Python 3.13 on `resolve` does not say so."""
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def _without(document: Document, keys: Collection[str], fault: Fault) -> Document:
    data = {key: value for key, value in document.data.items() if key not in keys}
    return Document(data, document.locations, [*document.faults, fault])
