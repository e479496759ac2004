"""One operation of the API: its path, the model of what is asked, and the function that answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, BinaryIO, Final, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.server.context import ServerContext

Method = Literal["GET", "POST", "PATCH", "DELETE"]
WRITTEN_BY_A_TRIAL: Final[Mapping[str, str]] = MappingProxyType(
    {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; sandbox"}
)
"""Headers of what a trial wrote: where a browser is led to it as a page, nothing in it runs or loads."""

_PLACE: Final = re.compile(r"\{(\w+)\}")


class Asked(BaseModel):
    """The parameters of a request: of its path and query, or of its path and body. Nothing else is taken."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class ExperimentAsked(Asked):
    """A request about one experiment."""

    experiment: str = Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="The id of the experiment.")


class TrialAsked(ExperimentAsked):
    """A request about one trial."""

    trial: int = Field(ge=1, le=10**9, description="The number of the trial.")


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request: `content` is JSON, or bytes of the given type; a `file` is sent after it."""

    content: JsonValue | bytes
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    file: BinaryIO | None = None


AskedT = TypeVar("AskedT", bound=Asked)


@dataclass(frozen=True, slots=True)
class Endpoint(Generic[AskedT]):
    """One operation.

    Attributes:
        method: The HTTP method.
        path: The path below the API, with `{places}` for fields of the model.
        resource: What the authorizer is asked about.
        summary: What it does, in one line.
        model: What is asked; fields that the path does not name are in the query, or in the body where there is one.
        run: Answers; called in a thread, so it may read the store.
        returns: The members of the JSON object that it gives, with their JSON types.
        content_types: Of its answer, where that is no JSON.
        status: Of its answer where nothing fails.
        is_slow: Whether it may ask other machines; then it keeps no other request waiting.
        is_private: Whether only those who may write may read it.
    """

    method: Method
    path: str
    resource: str
    summary: str
    model: type[AskedT]
    run: Callable[[ServerContext, AskedT], Answer]
    returns: Mapping[str, str] = field(default_factory=dict)
    content_types: tuple[str, ...] = ()
    status: int = 200
    is_slow: bool = False
    is_private: bool = False

    @property
    def action(self) -> str:
        """The action that the authorizer is asked about: `read` or `write`."""
        return "read" if self.method == "GET" and not self.is_private else "write"

    @property
    def has_body(self) -> bool:
        """True when the body holds the members that the path does not name."""
        return self.method in {"POST", "PATCH"}

    @property
    def path_names(self) -> list[str]:
        """The fields of the model that the path names."""
        return _PLACE.findall(self.path)

    def read(self, in_path: Mapping[str, str], others: Mapping[str, Any]) -> AskedT:
        """Return the request, checked.

        Raises:
            ValidationError: It is not as the model says; names all faults.
        """
        if self.has_body:
            return self.model.model_validate({**others, **in_path}, strict=True)
        return self.model.model_validate_strings({**others, **in_path})


def path_pattern(path: str) -> str:
    """Return the path as a regular expression; the model checks the text at a place."""
    return _PLACE.sub(r"(?P<\1>[^/]+)", path)
