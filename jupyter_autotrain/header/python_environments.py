"""The header's `environment:`: which interpreter and packages trials run with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from jupyter_autotrain.core.python_environment import EnvironmentKind, PythonEnvironment
from jupyter_autotrain.header.faults import KeyPath, UnfitError, expected_instead
from jupyter_autotrain.header.sections import Section
from jupyter_autotrain.header.types import Text, Truth

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
        """The environment that is meant; what it is made of is found out at submit."""
        if not self.kinds:
            return PythonEnvironment()
        (kind,) = self.kinds
        value = getattr(self, kind)
        return PythonEnvironment(EnvironmentKind(kind), "" if kind == _MATCH else str(value))


@dataclass(frozen=True)
class MatchForm:
    """Annotates the section: the text `match` stands for the key of that name."""

    def read(self, value: object) -> object:
        """The section that is meant.

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
    """What is wrong although each key alone is right: (path, found, expected, action).

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
