"""Operations on the header of a cell: its schema, what is wrong with it, what may be typed next; no kernel is asked."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import Annotated, Final

from pydantic import BeforeValidator, Field

from jupyter_autotrain import backends
from jupyter_autotrain import header as headers
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.header.document import Fault
from jupyter_autotrain.server.context import ServerContext
from jupyter_autotrain.server.endpoint import Answer, Asked, Endpoint

_RESOURCE: Final = "autotrain.header"
_MOST_CHARACTERS: Final = 4_000  # fits into a body also where each is escaped; of a longer cell the top is enough
_MOST_MATCHES: Final = 200
_PART: Final = r"([^/.\x00][^/\x00]*|\.[^/.\x00][^/\x00]*|\.\.[^/\x00]+)"  # of a path; not `.` nor `..`


def _whole(number: object) -> object:
    """Return a number as an integer where it is one.

    JSON has one type of numbers: 3.0 is an integer.
    """
    return int(number) if isinstance(number, float) and number.is_integer() else number


class CellAsked(Asked):
    """A cell, and the notebook it is in."""

    text: str = Field(max_length=_MOST_CHARACTERS, description="The cell from its top, %%autotrain, on.")
    notebook: str = Field(
        "", max_length=1000, pattern=f"^({_PART}(/{_PART})*)?$", description="Its path below the server's folder."
    )


class CompletionAsked(CellAsked):
    """A place in a cell."""

    cursor: Annotated[int, BeforeValidator(_whole)] = Field(
        ge=0, le=_MOST_CHARACTERS, description="Characters (code points) before the cursor."
    )


def show_schema(_server: ServerContext, _: Asked) -> Answer:
    """Answer with the JSON Schema of a header, with the options of each type of backend."""
    return Answer({"schema": headers.json_schema(backends.header_schema())})


def validate(server: ServerContext, asked: CellAsked) -> Answer:
    """Answer with all faults that running the cell would name before anything is sent.

    A header can name files, whose faults are told too; so it needs the leave to write, as a submission does.
    """
    context = _context(server, asked.notebook)
    faults = headers.cell_faults(asked.text, context) if asked.text.startswith(headers.MAGIC) else []
    return Answer({"faults": list(map(_fault_json, faults))})


def complete(server: ServerContext, asked: CompletionAsked) -> Answer:
    """Answer with the texts that may be typed next at a place of the magic line or the header."""
    context = _context(server, asked.notebook)
    origins = context.profiles()[0].origins()
    found = headers.completions(asked.text, min(asked.cursor, len(asked.text)), list(origins), context.schema)
    matches = [
        {
            "text": text,
            "origin": origins.get(text, ""),
            "title": found.title(text),
            "description": found.descriptions.get(text, ""),
        }
        for text in found.matches[:_MOST_MATCHES]
    ]
    return Answer({"start": found.start, "matches": [*matches], "sure": found.sure})


def _context(server: ServerContext, notebook: str) -> headers.HeaderContext:
    return backends.header_context(_folder(server.root, notebook), server.environ)


def _folder(root: Path, notebook: str) -> Path:
    """Return the folder of a notebook; that of the server where there is none such."""
    folder = root.joinpath(*PurePosixPath(notebook).parent.parts)
    try:
        is_inside = folder.is_dir() and folder.resolve().is_relative_to(root.resolve())
    except OSError:  # a name that is too long, a link to itself
        return root
    return folder if is_inside else root


def _fault_json(fault: Fault) -> JsonObject:
    location = fault.location
    return {
        "line": 1 if location.source else max(location.line, 1),
        "file": location.source,
        "found": str(location) + ": " + fault.found if location.source else fault.found,
        "expected": fault.expected,
        "action": fault.action,
    }


ENDPOINTS: Final = (
    Endpoint(
        "GET", "/header/schema", _RESOURCE, "The JSON Schema of a cell's header", Asked, show_schema,
        {"schema": "object"},
    ),
    Endpoint(
        "POST", "/header/faults", _RESOURCE, "What is wrong with the header of a cell", CellAsked, validate,
        {"faults": "array"},
    ),
    Endpoint(
        "POST", "/header/completions", _RESOURCE, "What may be typed next in the header of a cell", CompletionAsked,
        complete, {"start": "integer", "matches": "array", "sure": "boolean"},
    ),
)  # fmt: skip
