"""The values of `objective:` and `environment:`: what trials are ranked by, and the interpreter that they run with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, GetCoreSchemaHandler, GetJsonSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, core_schema

from jupyter_autotrain.agent.environments.python_environment import EnvironmentKind, PythonEnvironment
from jupyter_autotrain.core.objective import Direction, Objective, Summary
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.header.document import KeyPath, UnfitError, expected_instead, shown
from jupyter_autotrain.header.sections.section import Section
from jupyter_autotrain.header.types import Text, Truth

FORM: Final = "expected `maximize METRIC`, `maximize max(METRIC)` or `minimize mean(METRIC, last=5)`"
LARGEST_WINDOW: Final = 1000
SUMMARIES: Final = tuple(map(str, Summary))
_DIRECTIONS: Final = {
    "maximize": Direction.MAXIMIZE,
    "max": Direction.MAXIMIZE,
    "minimize": Direction.MINIMIZE,
    "min": Direction.MINIMIZE,
}
_METRIC = r"[^\s,()]{1,100}"
_PLAIN = re.compile(r"[^\s,]{1,100}")
_CALL = re.compile(rf"(\w{{1,20}})\(\s*({_METRIC})\s*(?:,([^()]{{0,40}}))?\)")
_WINDOW = re.compile(r"\s*last\s*=\s*(\d{1,9})\s*")
_PATTERN = (
    r"^\s*(maximize|max|minimize|min)\s+"
    rf"(({'|'.join(SUMMARIES)})\(\s*[^\s,()]+\s*(,\s*last\s*=\s*\d+\s*)?\)|[^\s,]*[^\s,)])\s*$"
)


def read_objective(value: object) -> Objective:
    """Return the objective that is meant.

    Raises:
        UnfitError: When it cannot be read; names the nearest spelling.
    """
    if isinstance(value, Objective):
        return value
    if isinstance(value, dict):
        if value.keys() - {"metric", "direction"} or "metric" not in value:
            raise UnfitError(FORM)
        word = str(value.get("direction", "maximize"))
        what = str(value["metric"])
    else:
        word, what = [*str(value).split(None, 1), "", ""][:2]
    what = what.strip()
    if call := _CALL.fullmatch(what):
        return _summarized(_direction(word, what), call)
    if not _PLAIN.fullmatch(what) or what.endswith(")"):
        raise UnfitError(FORM)
    return Objective(what, _direction(word, what))


def _direction(word: str, what: str) -> Direction:
    if word in _DIRECTIONS:
        return _DIRECTIONS[word]
    near = closest_match(word, ("maximize", "minimize"))
    raise UnfitError(f"did you mean `{near} {what}`?" if near else FORM)


def _summarized(direction: Direction, call: re.Match[str]) -> Objective:
    name, metric, more = call.groups()
    if name not in SUMMARIES:
        near = closest_match(name, SUMMARIES)
        known = f"expected one of {', '.join(SUMMARIES)} before ({metric})"
        raise UnfitError(f"did you mean `{direction} {near}({metric})`?" if near else known)
    return Objective(metric, direction, Summary(name), None if more is None else _window(name, metric, more))


def _window(name: str, metric: str, more: str) -> int:
    match = _WINDOW.fullmatch(more)
    if match is None or name == Summary.LAST or not 1 <= int(match[1]) <= LARGEST_WINDOW:
        other = Summary.MEAN if name == Summary.LAST else name
        raise UnfitError(
            f"expected how many of the newest values count, at most {LARGEST_WINDOW}",
            f"write `{other}({metric}, last=5)`",
            found=f"{shown(more.strip())} in {name}({metric}, ...)",
        )
    return int(match[1])


def read_objectives(value: object) -> tuple[Objective, ...]:
    """Return the objectives that are meant: one, or a list of which the first ranks trials.

    Raises:
        UnfitError: One cannot be read, or two are of the same metric.
    """
    items = value if isinstance(value, list | tuple) else [value]
    goals = tuple(map(read_objective, items))
    metrics = [goal.metric for goal in goals]
    if len(set(metrics)) < len(metrics) or not goals:
        raise UnfitError("expected different metrics", "each is one objective")
    return goals


Goals = Annotated[
    tuple[Objective, ...],
    BeforeValidator(read_objectives),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": _PATTERN},
                {"type": "object", "properties": {"metric": {"type": "string"}, "direction": {"type": "string"}}},
                {"type": "array", "items": {"type": "string", "pattern": _PATTERN}},
            ]
        }
    ),
]


_MATCH = "match"
_MOST_BYTES = 1 << 20  # of a requirements file


class EnvironmentSection(Section):
    """The interpreter and packages of trials; one key of these."""

    match: Truth = Field(
        default=False,
        description="A virtual environment with the versions of this notebook's kernel, made once at the place, by uv "
        "or pip; variables such as PIP_INDEX_URL under `env:` say where from.",
        examples=["true"],
    )
    python: Text | None = Field(
        default=None, description="An interpreter there, from Python 3.9 on.", examples=["/opt/venv/bin/python"]
    )
    conda: Text | None = Field(
        default=None,
        description="A conda environment there: its name or folder. Its variables and activate.d scripts are applied; "
        "conda itself is not needed.",
        examples=["torch2"],
    )
    requirements: Text | None = Field(
        default=None,
        description="A requirements file here; a virtual environment is made of it once at the place.",
        examples=["requirements.txt"],
    )
    image: Text | None = Field(
        default=None,
        description="A container image with a Python of at least 3.9, run by podman or docker on the host's network.",
        examples=["pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime"],
    )

    @property
    def kinds(self) -> list[str]:
        """The keys that are given."""
        return [name for name in type(self).model_fields if getattr(self, name)]

    def to_spec(self) -> PythonEnvironment:
        """Return the interpreter that is meant; what it is made of is found out at submit."""
        if not self.kinds:
            return PythonEnvironment()
        (kind,) = self.kinds
        value = getattr(self, kind)
        return PythonEnvironment(EnvironmentKind(kind), "" if kind == _MATCH else str(value))


@dataclass(frozen=True)
class MatchForm:
    """Annotates the section: the text `match` stands for the key of that name."""

    def read(self, value: object) -> object:
        """Return the section that is meant.

        Raises:
            UnfitError: It is another text.
        """
        if not isinstance(value, str):
            return value
        if value != _MATCH:
            raise UnfitError(
                expected_instead(value, (_MATCH,)),
                "or write `environment: {python: PATH}`; variables belong under `env:`",
            )
        return {_MATCH: True}

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_before_validator_function(self.read, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, object]:
        return {"anyOf": [{"type": "string", "enum": [_MATCH]}, handler(schema)]}


def contradictions(section: EnvironmentSection, folder: Path | None) -> Iterator[tuple[KeyPath, str, str, str]]:
    """Yield what is wrong although each key alone is right: (path, found, expected, action).

    Args:
        section: The section.
        folder: The notebook's folder; None where there is none.
    """
    if len(section.kinds) > 1:
        yield ("environment",), f"environment with {' and '.join(section.kinds)}", "expected one of them", "remove one"
    if section.requirements and folder is not None:
        path = folder / Path(section.requirements).expanduser()
        place: KeyPath = ("environment", "requirements")
        if not path.is_file():
            yield place, f"no file {section.requirements!r}", f"expected a file beside the notebook ({folder})", ""
        elif path.stat().st_size > _MOST_BYTES:
            yield place, f"{section.requirements!r} is too big", "expected a requirements file", ""
