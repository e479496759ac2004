"""Where settings come from: line flags > header > `-f FILE` > project file > user profile > defaults.

A key set to `null` is as if no weaker layer had set it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jupyter_autotrain.header.aliases import SECTIONS, canonical
from jupyter_autotrain.header.document import LIMIT_BYTES, NULLS, Document, PlainScalar
from jupyter_autotrain.header.faults import Fault, KeyPath, SourceLocation
from jupyter_autotrain.header.schema import Header
from jupyter_autotrain.header.yaml_reader import load

FILE_NAME = "autotrain.yml"


@dataclass(frozen=True, slots=True)
class HeaderContext:
    """What the entry point knows: the working folder, the environment and the usable backends.

    Attributes:
        cwd: The folder; `autotrain.yml` is searched here and upward.
        environ: The environment; JUPYTER_CONFIG_DIR or HOME leads to the user profile.
        backends: Names of usable backends; empty: any name is taken.
        schema: The keys that there are, with the sections of backends.
    """

    cwd: Path = field(default_factory=Path)
    environ: Mapping[str, str] = field(default_factory=dict)
    backends: Sequence[str] = ()
    schema: type[Header] = Header

    def profile(self) -> Path | None:
        """The user's profile, if there is one."""
        if config := self.environ.get("JUPYTER_CONFIG_DIR"):
            return _existing(Path(config) / FILE_NAME)
        if home := self.environ.get("HOME"):
            return _existing(Path(home, ".jupyter", FILE_NAME))
        return None

    def project_file(self) -> Path | None:
        """The nearest project file, from the folder upward."""
        start = self.cwd.absolute()
        return next((path for folder in (start, *start.parents) if (path := _existing(folder / FILE_NAME))), None)


def _existing(path: Path) -> Path | None:
    try:
        return path if path.is_file() else None
    except OSError:
        return None


def merge_sources(context: HeaderContext, header: Document, line: Document, file: str = "") -> Document:
    """All sources in one; the strongest wins key by key, in sections too."""
    profile = context.profile()
    project = context.project_file()
    sources = [read_file(profile, "user profile")] if profile else []
    if project and project != profile:
        sources.append(read_file(project, FILE_NAME))
    if file:
        sources.append(_requested_file(context, file))
    merged = Document()
    sections = (*SECTIONS, *context.schema.backend_sections)
    for settings in [*sources, header, line]:
        merged = _merge(merged, canonical(settings), sections)
    return merged


def _requested_file(context: HeaderContext, file: str) -> Document:
    try:
        path = context.cwd / Path(file).expanduser()
    except RuntimeError:  # `~name` of a user that does not exist
        path = context.cwd / file
    return read_file(path, path.name, SourceLocation(1))


def read_file(path: Path, source: str, requested_at: SourceLocation = SourceLocation()) -> Document:  # noqa: B008 - frozen
    """Settings of a file; what is wrong with it is a fault, at `asked_at` when it cannot be read."""
    try:
        text = _read(path)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        found = f"{path.name} cannot be read: {reason}"
        fault = Fault(found, "expected a YAML file", "check its path", requested_at)
        return Document(faults=[fault])
    rows = [(number, row.rstrip("\r")) for number, row in enumerate(text.split("\n"), 1)]
    return load([(number, "" if row.rstrip() == "---" else row) for number, row in rows], source)


def _read(path: Path) -> str:
    """The text of a file; never more than a header may have, and nothing that is no file, such as a pipe."""
    if path.exists() and not path.is_file():
        raise OSError(None, "not a regular file")
    with path.open("rb") as file:
        data = file.read(LIMIT_BYTES + 1)
    return data.decode("utf-8-sig", errors="replace" if len(data) > LIMIT_BYTES else "strict")


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
