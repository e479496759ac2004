"""The schema of a header with the types of backends that there are: what `backend:` takes, and a section per type."""

from __future__ import annotations

from functools import cache
from typing import Annotated, Any

from pydantic import BaseModel, Field, create_model

from jupyter_autotrain.header.backend_models import BackendForms, BackendTypes, backend_field, section_model
from jupyter_autotrain.header.schema import Header


@cache
def with_backend_types(types: BackendTypes) -> type[Header]:
    """The header's schema with the types of backends: their profiles, and a section for each that has options.

    Args:
        types: Name of each type, and the model of its options.
    """
    sections = {name: model for name, options in types if (model := section_model(name, options)).model_fields}
    fields: dict[str, Any] = {name: (model | None, _section_field(model)) for name, model in sections.items()}
    fields["backend"] = (Annotated[Any, BackendForms(types)], backend_field())
    extended = create_model("Header", __base__=Header, __doc__=Header.__doc__, **fields)
    extended.backend_types = types
    extended.backend_sections = tuple(sections)
    return extended


def _section_field(model: type[BaseModel]) -> Any:  # noqa: ANN401 - pydantic's field is typed so
    examples = [f"{{{name}: {field.examples[0]}}}" for name, field in model.model_fields.items() if field.examples]
    description = (model.__doc__ or "").strip().partition("\n")[0]
    return Field(default=None, description=description, examples=examples[:1])
