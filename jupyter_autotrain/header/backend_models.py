"""The forms of `backend:`: a name, a profile written out, or a list of both. The source of its JSON Schema and keys."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    WithJsonSchema,
    create_model,
)
from pydantic_core import CoreSchema

from jupyter_autotrain.core.profile import Price
from jupyter_autotrain.header.sections.section import Section
from jupyter_autotrain.header.types import AS_NUMBER, Count, Name, Text

BackendTypes = tuple[tuple[str, type[BaseModel]], ...]  # names and models of options
_TYPE = "What kind of backend it is (`%autotrain backends` lists them)."


class _Share(Section):
    """The share of a backend that an experiment may use."""

    at_most: Count | None = Field(
        default=None, description="How many of its trials may be there at the same time.", examples=["8"]
    )
    prefer: Annotated[float, Field(gt=0, le=1_000_000), AS_NUMBER] = Field(
        default=1.0, description="Its weight against the other backends.", examples=["2"]
    )


class NamedBackend(_Share):
    """A backend by its name."""

    name: Name = Field(description="The name of a profile or of a type.", examples=["lab"])


class _Inline(_Share):
    name: Name | None = Field(default=None, description="What to call it; else as its type.", examples=["lab"])


class PriceSection(Section):
    """The price of what is taken there."""

    cpu_hour: Annotated[float, Field(ge=0, le=1_000_000), AS_NUMBER] = Field(
        default=0.0, description="Of one CPU for an hour.", examples=["0.04"]
    )
    gpu_hour: Annotated[float, Field(ge=0, le=1_000_000), AS_NUMBER] = Field(
        default=0.0, description="Of one GPU for an hour.", examples=["2.50"]
    )
    currency: Name = Field(default="EUR", description="The name of the money.", examples=["USD"])

    def to_price(self) -> Price:
        """Return the price that it names."""
        return Price(self.cpu_hour, self.gpu_hour, self.currency)


class _Defined(Section):
    price: PriceSection | None = Field(
        default=None,
        description="What it costs; an open session then shows how much by now.",
        examples=["{gpu_hour: 2.50, currency: USD}"],
    )


@cache
def profile_model(type_name: str, options: type[BaseModel]) -> type[BaseModel]:
    """Return what stands under a profile's name in a file: its type, its options and its price."""
    bases: Any = (_Defined, options)
    return create_model(f"{type_name}_profile", __base__=bases, __doc__=options.__doc__, type=_type_of(type_name))


@cache
def inline_model(type_name: str, options: type[BaseModel]) -> type[BaseModel]:
    """Return a profile written out in a header: its type and options, a name, and how much of it may be used."""
    bases: Any = (_Inline, options)
    return create_model(f"{type_name}_backend", __base__=bases, __doc__=options.__doc__, type=_type_of(type_name))


@cache
def section_model(type_name: str, options: type[BaseModel]) -> type[BaseModel]:
    """Return what an experiment itself can set for a type: its `header_keys`; all options where it names none."""
    keys = getattr(options, "header_keys", None)
    if keys is None:
        return options
    fields: Any = {key: (options.model_fields[key].rebuild_annotation(), options.model_fields[key]) for key in keys}
    return create_model(f"{type_name}_section", __base__=Section, __doc__=options.__doc__, **fields)


def base_type(model: type[BaseModel], types: BackendTypes) -> tuple[str, frozenset[str]]:
    """Return the type whose options a model has too, and their names; "" and none where it has only its own."""
    bases = [(name, other) for name, other in types if other is not model and issubclass(model, other)]
    if not bases:
        return "", frozenset()
    name, nearest = max(bases, key=lambda one: len(one[1].__mro__))
    same = {key for key, field in nearest.model_fields.items() if _is_same(model.model_fields[key], field)}
    return name, frozenset(same)


def _is_same(field: Any, other: Any) -> bool:  # noqa: ANN401 - pydantic's description of a field
    return bool((field.description, field.default) == (other.description, other.default))


def _type_of(type_name: str) -> Any:  # noqa: ANN401 - pydantic's pair of type and field
    return Annotated[Text, WithJsonSchema({"const": type_name})], Field(description=_TYPE, examples=[type_name])


@dataclass(frozen=True)
class BackendForms:
    """Annotates `backend:`; what it says is read by `backend_reader`, which knows the profiles."""

    types: BackendTypes = ()

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler(source)

    def __get_pydantic_json_schema__(self, _: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        inline: Any = [inline_model(name, options) for name, options in self.types]
        one: Any = reduce(or_, [NamedBackend, *inline], Text)
        return handler(TypeAdapter(one | list[one]).core_schema)


def backend_field() -> Any:  # noqa: ANN401 - pydantic's field is typed so
    """Return the field `backend:` of a header."""
    return Field(
        default="local",
        description="Where trials run: one backend or several, by name or written out (see %autotrain backends).",
        examples=["lab", "{type: ssh, hosts: [gpu1, {host: gpu2, port: 2222}]}", "[local, {name: lab, at_most: 8}]"],
    )


def profiles_schema(types: BackendTypes) -> dict[str, Any]:
    """JSON Schema of a mapping of profiles, as in `backends.yaml`."""
    models: Any = reduce(or_, [profile_model(name, options) for name, options in types])
    return TypeAdapter(Mapping[Name, models]).json_schema()
