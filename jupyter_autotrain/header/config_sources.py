"""Where settings come from: line flags > header > `-f FILE` > project file > user's file > defaults.

A key set to `null` is as if no weaker layer had set it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_autotrain.header import project_files, project_trust
from jupyter_autotrain.header.aliases import SECTIONS, canonical
from jupyter_autotrain.header.document import NULLS, Document, Fault, KeyPath, PlainScalar, SourceLocation, shown
from jupyter_autotrain.header.nni.experiment_file import is_nni, read_nni_file
from jupyter_autotrain.header.profiles import DEFINITIONS, USER_FILE, Definition, Profiles, defined_in
from jupyter_autotrain.header.project_files import FILE_NAME
from jupyter_autotrain.header.schema import Header
from jupyter_autotrain.header.settings_files import existing, read_file, resolved


@dataclass(frozen=True, slots=True)
class HeaderContext:
    """The surroundings of a header: the working folder, the variables and the types of backends.

    Attributes:
        cwd: The folder; `autotrain.yaml` is searched here and upward, to the root of the repository.
        environ: The variables; JUPYTER_CONFIG_DIR or HOME leads to the user's files.
        backends: Names of the types of backends; empty: any name is taken.
        schema: The keys that there are, with the sections of backends.
    """

    cwd: Path = field(default_factory=Path)
    environ: Mapping[str, str] = field(default_factory=dict)
    backends: Sequence[str] = ()
    schema: type[Header] = Header

    def config_folder(self) -> Path | None:
        """Return the user's folder of Jupyter's configuration."""
        if config := self.environ.get("JUPYTER_CONFIG_DIR"):
            return Path(config)
        home = self.environ.get("HOME")
        return Path(home, ".jupyter") if home else None

    def user_file(self, name: str = FILE_NAME) -> Path | None:
        """Return a file of the user's, if there is one."""
        folder = self.config_folder()
        return existing(folder / name) if folder else None

    def project_file(self) -> Path | None:
        """Return the nearest project file that nobody else can have written."""
        return next((path for path in self._project_files() if not project_trust.ownership_fault(path)), None)

    def uncounted(self) -> list[Fault]:
        """Return what of project files never counts."""
        return uncounted(self)

    def unsafe_project_files(self) -> list[tuple[Path, str]]:
        """Return the project files that do not count, and why: somebody else can have written them."""
        found = [(path, project_trust.ownership_fault(path)) for path in self._project_files()]
        return [(path, fault) for path, fault in found if fault]

    def _project_files(self) -> Iterator[Path]:
        """Project files in the folder and above it, up to the repository's root, the home or another file system."""
        start = self.cwd.absolute()
        home = Path(self.environ.get("HOME") or "/").absolute()
        device = _device(start)
        for folder in (start, *start.parents):
            if _device(folder) != device:
                return
            if path := existing(folder / FILE_NAME):
                yield path
            if folder == home or (folder / ".git").exists():
                return

    def is_trusted(self, project: Path, document: Document) -> bool:
        """Return whether the user has agreed to what a project file can do.

        Args:
            project: The file.
            document: What stands in it.
        """
        return project_trust.is_trusted(project, document.data, self.config_folder(), self.environ)

    def shown(self, path: Path) -> str:
        """Return a file's path for people: below the home with `~`, else from the working folder."""
        home = self.environ.get("HOME", "")
        if path == self.user_file(path.name):
            return f"~{str(path).removeprefix(home)}" if home and path.is_relative_to(home) else str(path)
        return os.path.relpath(path, self.cwd)

    def read(self, path: Path) -> Document:
        """Return settings of a file; what is wrong with it is among its faults."""
        return read_file(path, self.shown(path))

    def profiles(self) -> tuple[Profiles, list[Fault]]:
        """Return what `backend:` can name, and faults of the files that define it."""
        found, faults = definitions(self)
        return Profiles(self.backends, dict(self.schema.backend_types), found, self.cwd), faults


def merge_sources(context: HeaderContext, header: Document, line: Document, file: str = "") -> Document:
    """All sources in one; the strongest wins key by key, in sections too."""
    user = context.user_file()
    project = context.project_file()
    sources = [_user_settings(context.read(user))] if user else []
    if project and project != user:
        document = context.read(project)
        settings = project_files.without_hooks(_without_definitions(document))
        if not context.is_trusted(project, document):
            settings = project_files.until_trusted(settings, context.schema.model_fields)
        sources.append(project_files.naming_inside(canonical(settings), project.parent, context.cwd))
    if file:
        sources.append(_requested_file(context, file))
    merged = Document()
    sections = (*SECTIONS, *context.schema.backend_sections)
    for settings in [*sources, header, line]:
        merged = _merge(merged, resolved(canonical(settings), context.cwd), sections)
    return merged


def definitions(context: HeaderContext) -> tuple[dict[str, Definition], list[Fault]]:
    """Get the profiles of the user's and the project's file by name, the project's first, and faults of both files."""
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
        found = project_files.with_projects(found, nearer, is_trusted=context.is_trusted(project, document))
    return found, faults


def uncounted(context: HeaderContext) -> list[Fault]:
    """Return what of project files never counts, for listings; it is no fault of a cell that happens to lie there."""
    faults = [project_files.not_counted(context.shown(path), why) for path, why in context.unsafe_project_files()]
    if (project := context.project_file()) and project != context.user_file():
        nearer = defined_in(context.read(project), (DEFINITIONS,), project)
        faults += project_files.built_in(nearer)
    return faults


def _no_definitions(document: Document) -> list[Fault]:
    """Return what is wrong where `backends:` of a project's file is something else than profiles by name."""
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


def _device(folder: Path) -> int | None:
    try:
        return folder.stat().st_dev
    except OSError:
        return None


def _requested_file(context: HeaderContext, file: str) -> Document:
    try:
        path = context.cwd / Path(file).expanduser()
    except RuntimeError:  # `~name` of a user that does not exist
        path = context.cwd / file
    document = read_file(path, path.name, SourceLocation(1))
    if not document.faults and is_nni(document.data):
        settings = read_nni_file(path).settings
        return Document({key: value for key, value in settings.items() if value is not None})
    if not path.is_file() or path.resolve().is_relative_to(context.cwd.resolve()):
        return document
    has_settings = not document.data or canonical(document).data.keys() & context.schema.model_fields.keys()
    return document if has_settings and not document.faults else Document(faults=[_not_settings(path)])


def _not_settings(path: Path) -> Fault:
    """Return the fault of a file from elsewhere that is no header.

    Its text, which may be anything, gets into no notebook.
    """
    found = f"{path.name} cannot be read as settings"
    return Fault(found, "expected `key: value` lines", "check the file", SourceLocation(1))


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
