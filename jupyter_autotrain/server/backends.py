"""Operations on backends: what a header can name, runs there, and one has to give; trust in the project's file."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from typing import Final

from pydantic import Field

from jupyter_autotrain import backends
from jupyter_autotrain.agent.json import JsonObject, JsonValue, to_json
from jupyter_autotrain.agent.states import ExperimentState, TrialState
from jupyter_autotrain.client.waiting import LOOK_S, Patience
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord
from jupyter_autotrain.errors import AutotrainError, UnknownExperimentError
from jupyter_autotrain.header import HeaderContext, project_review
from jupyter_autotrain.header.document import Fault, SourceLocation, combined_error
from jupyter_autotrain.header.profiles import USER_FILE, Definition, Profiles
from jupyter_autotrain.server.context import ServerContext, check_owner
from jupyter_autotrain.server.endpoint import Answer, Asked, Endpoint
from jupyter_autotrain.server.problems import not_found

RESOURCE: Final = "autotrain.backends"
_MOST_TRIALS: Final = 20  # that are named of each backend; all are counted
_THERE: Final = frozenset({TrialState.PREPARING, TrialState.RUNNING})


class BackendAsked(Asked):
    """One backend."""

    backend: str = Field(min_length=1, max_length=64, description="The name of a profile, or of a type.")


def list_backends(server: ServerContext, _: Asked) -> Answer:
    """Answer with the profiles and the trials that run there, without asking any of their machines."""
    context = header_context(server)
    profiles, faults = context.profiles()
    there = _running(server)
    rows = [_row(context, profiles, name, there.get(name, [])) for name in profiles.names()]
    return Answer({"backends": rows, "faults": list(map(_without_file, faults))})


def show_inventory(server: ServerContext, asked: BackendAsked) -> Answer:
    """Answer with the resources that a backend has to give now; ask its machines."""
    profile = find_profile(server, asked.backend)

    def look() -> Answer:
        with closing(backends.create(profile, BackendContext(server.home))) as backend:
            probe = backend.probe()
            inventory = to_json(backend.discover()) if probe.usable else None
        return Answer({"usable": probe.usable, "reason": probe.reason, "inventory": inventory})

    return Patience(LOOK_S).ask_one(profile.name, look)


def header_context(server: ServerContext) -> HeaderContext:
    """Return the context for reading profiles; those of the folder that the server shows count.

    Raises:
        ProblemError: The home is not the user's alone.
    """
    check_owner(server.home)
    return backends.header_context(server.root, server.environ)


def find_profile(server: ServerContext, name: str) -> Profile:
    """Return the profile of a name.

    Raises:
        ProblemError: There is none.
        HeaderError: It is faulty.
    """
    profiles, _ = header_context(server).profiles()
    if name not in profiles.names():
        raise not_found(f"backend {name!r}", f"One of: {', '.join(profiles.names())}.")
    profile, faults = profiles.find(name)
    if profile is None:
        raise combined_error(faults)
    return profile


def level_of(context: HeaderContext, definition: Definition | None) -> str:
    """Return the level of the file that defines a backend.

    It is `project`, which wins, or `user`; `type` where no file does.
    """
    if definition is None:
        return "type"
    return "user" if definition.file == context.user_file(USER_FILE) else "project"


def _row(context: HeaderContext, profiles: Profiles, name: str, there: list[JsonValue]) -> JsonValue:
    profile, faults = profiles.find(name)
    definition = profiles.definitions.get(name)
    hidden = definition.hides if definition else None
    row: JsonObject = {
        "name": name,
        "type": profile.type if profile else "",
        "level": level_of(context, definition),
        "hides": level_of(context, hidden) if hidden else "",
        "running": len(there),
        "trials": there[:_MOST_TRIALS],
        "faults": list(map(_without_file, faults)),
    }
    return row


def _without_file(fault: Fault) -> str:
    """Return a fault without its file.

    The places of files are told only to those who may write (`GET /profiles`).
    """
    return str(replace(fault, location=SourceLocation(fault.location.line)))


def _running(server: ServerContext) -> dict[str, list[JsonValue]]:
    """Return the trials of this home that run on each backend now."""
    found: dict[str, list[JsonValue]] = {}
    try:
        with server.stores.reading() as store:
            running = [each.id for each in store.listed() if each.state is ExperimentState.RUNNING]
            for record in store.records_of(running):
                for trial in store.trials(record.id):
                    if trial.state in _THERE:
                        name = trial.placement.backend or record.spec.backends[0].profile.name
                        found.setdefault(name, []).append(_trial(record, trial))
    except UnknownExperimentError:  # there is no home yet, and reading makes none
        return found
    return found


def _trial(record: ExperimentRecord, trial: TrialRecord) -> JsonValue:
    row: JsonObject = {
        "experiment": record.id,
        "name": f"{record.name}@{record.version}",
        "trial": trial.number,
        "nodes": [node.node for node in trial.placement.nodes],
    }
    return row


_NOTHING: Final[JsonObject] = {"path": "", "digest": "", "is_trusted": False, "effects": [], "fault": ""}


class TrustAsked(Asked):
    """Which file is agreed to."""

    digest: str = Field(pattern=r"^[0-9a-f]{32}$", description="That of the file as the user has seen it.")


def show_project(server: ServerContext, _: Asked) -> Answer:
    """Answer with the effects of the project's file, and whether the user has agreed to it.

    `fault` says why none counts.
    """
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
        "GET", "/backends", RESOURCE, "The backends that a header can name, and what runs there", Asked, list_backends,
        {"backends": "array", "faults": "array"},
    ),
    Endpoint(
        "GET", "/backends/{backend}/inventory", RESOURCE, "What a backend has to give now; asks its machines",
        BackendAsked, show_inventory, {"usable": "boolean", "reason": "string"}, is_slow=True,
    ),
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
