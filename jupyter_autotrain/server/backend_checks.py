"""Operations on checks of backends: begin one, follow its steps, cancel it."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Annotated, Final

from pydantic import Field

from jupyter_autotrain.agent.json import to_json
from jupyter_autotrain.client.backend_check import check_backend
from jupyter_autotrain.server.backends import RESOURCE, BackendAsked, find_profile
from jupyter_autotrain.server.context import ServerContext
from jupyter_autotrain.server.endpoint import Answer, Asked, Endpoint

NodeName = Annotated[str, Field(min_length=1, max_length=256)]


class CheckBegun(BackendAsked):
    """A check of a backend from end to end."""

    nodes: list[NodeName] = Field([], max_length=64, description="Which of its nodes; none: all.")


class CheckAsked(Asked):
    """One check."""

    check: str = Field(pattern=r"^[0-9a-f]{32}$", description="The id that it was begun with.")


class StepsAsked(CheckAsked):
    """A question for the steps of a check."""

    after: int = Field(0, ge=0, le=100_000, description="How many steps are known already.")


def begin_check(server: ServerContext, asked: CheckBegun) -> Answer:
    """Begin a check; a tiny trial runs on each node."""
    profile = find_profile(server, asked.backend)
    steps = partial(check_backend, profile, tuple(asked.nodes))
    return Answer({"check": server.checks.start(asked.backend, steps)}, status=HTTPStatus.ACCEPTED)


def show_check(server: ServerContext, asked: StepsAsked) -> Answer:
    """Answer with the steps that have ended."""
    check = server.checks.find(asked.check)
    state = check.state  # before its steps, so that the last are never missed
    steps = list(check.steps)
    new = list(map(to_json, steps[asked.after :]))
    is_good = state == "done" and all(step.is_good for step in steps)
    return Answer({"backend": check.backend, "state": state, "good": is_good, "steps": new})


def cancel_check(server: ServerContext, asked: CheckAsked) -> Answer:
    """Let no step follow; a trial that runs for it is ended and deleted."""
    check = server.checks.find(asked.check)
    check.cancelled.set()
    return Answer({"state": check.state})


ENDPOINTS: Final = (
    Endpoint(
        "POST", "/backends/{backend}/checks", RESOURCE, "Check a backend by a true round trip", CheckBegun, begin_check,
        {"check": "string"}, status=HTTPStatus.ACCEPTED,
    ),
    Endpoint(
        "GET", "/checks/{check}", RESOURCE, "The steps of a check", StepsAsked, show_check,
        {"state": "string", "good": "boolean", "steps": "array"}, is_private=True,
    ),
    Endpoint(
        "DELETE", "/checks/{check}", RESOURCE, "Cancel a check", CheckAsked, cancel_check, {"state": "string"}
    ),
)  # fmt: skip
