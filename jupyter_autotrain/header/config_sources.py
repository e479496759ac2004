"""Where settings come from: line flags > header > `-f FILE` > project file > user's file > defaults.

A key set to `null` is as if no weaker layer had set it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from jupyter_autotrain.header.aliases import SECTIONS, canonical
from jupyter_autotrain.header.document import NULLS, Document, PlainScalar
from jupyter_autotrain.header.faults import Fault, KeyPath, SourceLocation, shown
from jupyter_autotrain.header.profile_files import DEFINITIONS, USER_FILE, Definition, defined_in
from jupyter_autotrain.header.profiles import Profiles
from jupyter_autotrain.header.schema import Header
from jupyter_autotrain.header.settings_files import existing, read_file

FILE_NAME = "autotrain.yaml"
_HOOKS = "hooks"


@dataclass(frozen=True, slots=True)
class HeaderContext:
    """What the entry point knows: the working folder, the environment and the types of backends.

    Attributes:
        cwd: The folder; `autotrain.yaml` is searched here and upward, to the root of the repository.
        environ: The environment; JUPYTER_CONFIG_DIR or HOME leads to the user's files.
        backends: Names of the types of backends; empty: any name is taken.
        schema: The keys that there are, with the sections of backends.
    """

    cwd: Path = field(default_factory=Path)
    environ: Mapping[str, str] = field(default_factory=dict)
    backends: Sequence[str] = ()
    schema: type[Header] = Header

    def config_folder(self) -> Path | None:
        """The user's folder of Jupyter's configuration."""
        if config := self.environ.get("JUPYTER_CONFIG_DIR"):
            return Path(config)
        home = self.environ.get("HOME")
        return Path(home, ".jupyter") if home else None

    def user_file(self, name: str = FILE_NAME) -> Path | None:
        """A file of the user's, if there is one."""
        folder = self.config_folder()
        return existing(folder / name) if folder else None

    def project_file(self) -> Path | None:
        """The nearest project file: in the folder or above it, up to the root of its repository."""
        start = self.cwd.absolute()
        for folder in (start, *start.parents):
            if path := existing(folder / FILE_NAME):
                return path
            if (folder / ".git").exists():
                return None
        return None

    def shown(self, path: Path) -> str:
        """A file's path for people: below the home with `~`, else from the working folder."""
        home = self.environ.get("HOME", "")
        if path == self.user_file(path.name):
            return f"~{str(path).removeprefix(home)}" if home and path.is_relative_to(home) else str(path)
        return os.path.relpath(path, self.cwd)

    def read(self, path: Path) -> Document:
        """Settings of a file; what is wrong with it is among its faults."""
        return read_file(path, self.shown(path))

    def profiles(self) -> tuple[Profiles, list[Fault]]:
        """What `backend:` can name, and faults of the files that define it."""
        found, faults = definitions(self)
        return Profiles(self.backends, dict(self.schema.backend_types), found, self.cwd), faults


def merge_sources(context: HeaderContext, header: Document, line: Document, file: str = "") -> Document:
    """All sources in one; the strongest wins key by key, in sections too."""
    user = context.user_file()
    project = context.project_file()
    sources = [_user_settings(context.read(user))] if user else []
    if project and project != user:
        sources.append(_without_hooks(_without_definitions(context.read(project))))
    if file:
        sources.append(_requested_file(context, file))
    merged = Document()
    sections = (*SECTIONS, *context.schema.backend_sections)
    for settings in [*sources, header, line]:
        merged = _merge(merged, canonical(settings), sections)
    return merged


def definitions(context: HeaderContext) -> tuple[dict[str, Definition], list[Fault]]:
    """The profiles of the user's and the project's file by name, the project's first, and faults of both files."""
    found: dict[str, Definition] = {}
    faults = []
    if user := context.user_file(USER_FILE):
        document = context.read(user)
        found |= defined_in(document, (), user)
        faults += document.faults
    project = context.project_file()
    if project and project != context.user_file():
        document = context.read(project)
        nearer = defined_in(document, (DEFINITIONS,), project)
        faults += [*document.faults, *_no_definitions(document)]
        found |= {name: replace(definition, hides=found.get(name)) for name, definition in nearer.items()}
    return found, faults


def _no_definitions(document: Document) -> list[Fault]:
    """What is wrong where `backends:` of a project's file is something else than profiles by name."""
    given = document.data.get(DEFINITIONS)
    if not given or isinstance(given, dict):
        return []
    expected = "expected profiles by name, such as {lab: {type: ssh, hosts: [gpu1]}}"
    return [Fault(f"{DEFINITIONS}: {shown(given)}", expected, location=document.location((DEFINITIONS,)))]


def _user_settings(document: Document) -> Document:
    if DEFINITIONS not in document.data:
        return document
    settings = _without_definitions(document)
    location = document.location((DEFINITIONS,))
    found = f"`{DEFINITIONS}:` in your {FILE_NAME}"
    fault = Fault(found, f"expected your profiles in {USER_FILE} beside it", "move them there", location)
    return Document(settings.data, settings.locations, [*settings.faults, fault])


def _without_definitions(document: Document) -> Document:
    data = {key: value for key, value in document.data.items() if key != DEFINITIONS}
    return Document(data, document.locations, document.faults)


def _without_hooks(document: Document) -> Document:
    """A project's file comes with the folder: it runs no command of its own and sends nothing anywhere."""
    if _HOOKS not in document.data:
        return document
    fault = Fault(
        f"`{_HOOKS}:` in a project's {FILE_NAME}",
        f"expected hooks in your own {FILE_NAME} or in the cell",
        "move them there",
        document.location((_HOOKS,)),
    )
    data = {key: value for key, value in document.data.items() if key != _HOOKS}
    return Document(data, document.locations, [*document.faults, fault])


def _requested_file(context: HeaderContext, file: str) -> Document:
    try:
        path = context.cwd / Path(file).expanduser()
    except RuntimeError:  # `~name` of a user that does not exist
        path = context.cwd / file
    return read_file(path, path.name, SourceLocation(1))


def _merge(below: Document, above: Document, sections: Sequence[str]) -> Document:
    data = dict(below.data)
    hidden = set[KeyPath]()
    for key, value in above.data.items():
        if key in sections and isinstance(value, dict):
            under = data.get(key)
            data[key] = _without_nulls(under | value if isinstance(under, dict) else value)
            hidden |= {(key, inner) for inner in value}
        else:
            data[key] = value
            hidden.add((key,))
    locations = {path: location for path, location in below.locations.items() if not hidden & {path[:1], path[:2]}}
    return Document(_without_nulls(data), locations | above.locations, below.faults + above.faults)


def _without_nulls(data: dict[str, object]) -> dict[str, object]:
    """Without what is null, which takes back what a weaker layer says; a value left empty stays, as a fault."""
    return {key: value for key, value in data.items() if not (isinstance(value, PlainScalar) and value in NULLS)}
