"""Operations on backends: the profiles that a header can name, and, when asked, what one of them has to give."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from jupyter_autotrain import backends
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.json import JsonObject, JsonValue, to_json
from jupyter_autotrain.core.states import ExperimentState, TrialState
from jupyter_autotrain.errors import UnknownExperimentError
from jupyter_autotrain.header.faults import combined_error
from jupyter_autotrain.header.profiles import Profiles
from jupyter_autotrain.server.context import ServerContext, check_owner
from jupyter_autotrain.server.endpoint import Answer, Asked, Endpoint
from jupyter_autotrain.server.problems import not_found
from jupyter_autotrain.views.experiment_list import MOST_LISTED

_RESOURCE: Final = "autotrain.backends"


class BackendAsked(Asked):
    """One backend."""

    backend: str = Field(min_length=1, max_length=64, description="The name of a profile, or of a type.")


def list_backends(server: ServerContext, _: Asked) -> Answer:
    """The profiles, without asking any of their machines."""
    profiles, faults = _profiles(server)
    running = _running(server)
    rows = [_row(profiles, name, running.get(name, 0)) for name in profiles.names()]
    return Answer({"backends": rows, "faults": [str(fault) for fault in faults]})


def show_inventory(server: ServerContext, asked: BackendAsked) -> Answer:
    """What a backend has to give now; asks its machines."""
    profiles, _ = _profiles(server)
    if asked.backend not in profiles.names():
        raise not_found(f"backend {asked.backend!r}", f"One of: {', '.join(profiles.names())}.")
    profile, faults = profiles.find(asked.backend)
    if profile is None:
        raise combined_error(faults)
    backend = backends.create(profile, BackendContext(server.home))
    try:
        probe = backend.probe()
        inventory = to_json(backend.discover()) if probe.usable else None
    finally:
        backend.close()
    return Answer({"usable": probe.usable, "reason": probe.reason, "inventory": inventory})


def _profiles(server: ServerContext) -> tuple[Profiles, list[object]]:
    check_owner(server.home)
    profiles, faults = backends.header_context(server.root, server.environ).profiles()
    return profiles, [*faults]


def _row(profiles: Profiles, name: str, running: int) -> JsonValue:
    profile, faults = profiles.find(name)
    definition = profiles.definitions.get(name)
    row: JsonObject = {
        "name": name,
        "type": profile.type if profile else "",
        "defined_in": str(definition.location) if definition else "",
        "running": running,
        "faults": [str(fault) for fault in faults],
    }
    return row


def _running(server: ServerContext) -> dict[str, int]:
    """How many trials of this home run on each backend now."""
    found: dict[str, int] = {}
    try:
        with server.stores.reading() as store:
            running = [r for r in store.experiments(MOST_LISTED) if r.state is ExperimentState.RUNNING]
            for record in running:
                for trial in store.trials(record.id):
                    if trial.state in {TrialState.PREPARING, TrialState.RUNNING}:
                        name = trial.backend or record.spec.backends[0].profile.name
                        found[name] = found.get(name, 0) + 1
    except UnknownExperimentError:  # there is no home yet, and reading makes none
        return found
    return found


ENDPOINTS: Final = (
    Endpoint(
        "GET", "/backends", _RESOURCE, "The backends that a header can name", Asked, list_backends,
        {"backends": "array", "faults": "array"},
    ),
    Endpoint(
        "GET", "/backends/{backend}/inventory", _RESOURCE, "What a backend has to give now; asks its machines",
        BackendAsked, show_inventory, {"usable": "boolean", "reason": "string"}, is_slow=True,
    ),
)  # fmt: skip
