"""Operations on the project's file of the folder that the server shows: what it would do, and agreeing to it."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.header import project_review
from jupyter_autotrain.server.backends import RESOURCE, header_context
from jupyter_autotrain.server.context import ServerContext
from jupyter_autotrain.server.endpoint import Answer, Asked, Endpoint

_NOTHING: Final[JsonObject] = {"path": "", "digest": "", "is_trusted": False, "effects": [], "fault": ""}


class TrustAsked(Asked):
    """Which file is agreed to."""

    digest: str = Field(pattern=r"^[0-9a-f]{32}$", description="That of the file as the user has seen it.")


def show_project(server: ServerContext, _: Asked) -> Answer:
    """What the project's file would do, and whether the user has agreed to it; `fault` says why none counts."""
    try:
        found = project_review.review(header_context(server))
    except AutotrainError as error:
        return Answer({**_NOTHING, "fault": error.found})
    row: JsonObject = {"path": str(found.path), "digest": found.digest, "is_trusted": found.is_trusted}
    return Answer({**_NOTHING, **row, "effects": [*found.effects]})


def trust_project(server: ServerContext, asked: TrustAsked) -> Answer:
    """Keep that the user agrees to the file, unless it has changed since it was looked at."""
    project_review.agree(header_context(server), asked.digest)
    return Answer({"is_trusted": True})


ENDPOINTS: Final = (
    Endpoint(
        "GET", "/project", RESOURCE, "What the project's file would do, and whether it is trusted", Asked, show_project,
        {"path": "string", "digest": "string", "is_trusted": "boolean", "effects": "array", "fault": "string"},
        is_private=True,
    ),
    Endpoint(
        "POST", "/project", RESOURCE, "Agree to the project's file with this digest", TrustAsked, trust_project,
        {"is_trusted": "boolean"},
    ),
)  # fmt: skip
