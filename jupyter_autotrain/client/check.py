"""Checks of a spec before it is submitted: whether its backend can run it, and what the backend would receive."""

from __future__ import annotations

from collections.abc import Iterator

from jupyter_autotrain import backends
from jupyter_autotrain.client import python_environment
from jupyter_autotrain.core.attempt import trial_spec
from jupyter_autotrain.core.backend import Backend, BackendContext, Submission
from jupyter_autotrain.core.data import DataKind
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.spec import ExperimentSpec, Placement
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.errors import BackendUnavailableError, DataError

_SHOWN = 3


def check(spec: ExperimentSpec, home: Home) -> list[str]:
    """Make sure that one of the spec's backends can be used from here and that each has what the spec asks of it.

    Returns:
        How the backends' packages differ from those of the notebook's kernel, one line each.

    Raises:
        BackendUnavailableError: It cannot; names everything that is missing.
    """
    lines = python_environment.notes(spec)
    for choice in spec.backends:
        lines += _check_choice(spec, choice.profile, home)
    return lines


def _check_choice(spec: ExperimentSpec, profile: Profile, home: Home) -> list[str]:
    backend = backends.create(profile, BackendContext(home))
    probe = backend.probe()
    if not probe.usable:
        raise BackendUnavailableError(
            f"The backend {profile.name!r} cannot be used here: {probe.reason}",
            "A backend that is usable from here was expected.",
            "See which are with '%autotrain backends'.",
        )
    _check_paths(spec, backend)
    if missing := list(_missing(spec, backend)):
        raise BackendUnavailableError(
            f"The backend {profile.name!r} cannot do this: {'; '.join(missing)}.",
            "The header may ask only for what its backend has.",
            "Remove these keys, or choose another backend ('%autotrain backends' lists what each can do).",
        )
    return python_environment.check_packages(spec, backend)


def _check_paths(spec: ExperimentSpec, backend: Backend) -> None:
    """What `data:` says is there already has to be there on every node."""
    names = {source.path: source.name for source in spec.data if source.kind is DataKind.PATH}
    missing = backend.missing_paths(list(names)) if names else []
    if missing:
        found = [f"data.{names[path]}: {path} is not there on {node}" for node, path in missing]
        more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        raise DataError(
            f"{'; '.join(found[:_SHOWN])}{more}.",
            f"A path that every node of the backend {backend.name!r} has.",
            "Correct `path:`, put the data there, or send it from here: `NAME: ./file`.",
        )


def preview(spec: ExperimentSpec, home: Home) -> Submission:
    """What the backend would receive for the first trial; nothing is stored or started."""
    first = TrialRecord("dry-run", 1, TrialState.WAITING, {})
    backend = backends.create(spec.backends[0].profile, BackendContext(home))
    return backend.render(trial_spec(spec, first), Placement())


def _missing(spec: ExperimentSpec, backend: Backend) -> Iterator[str]:
    can = backend.capabilities
    needs = spec.resources
    if spec.secrets and not can.secrets:
        yield "secrets (it has no safe way to pass them on)"
    if spec.returns and not can.artifacts:
        yield "returns (it brings no files back)"
    if needs.gpus and not can.gpu_slots:
        yield "resources.gpus (it gives out no GPUs)"
    if needs.nodes > 1 and not can.multi_node:
        yield "resources.nodes (it runs a trial on one node; there, `workers_per_node` gives it several processes)"
    if needs.workers_per_node > 1 and not can.multi_worker:
        yield "resources.workers_per_node (it starts one worker per trial)"
    if spec.launcher != "env" and not can.multi_worker:
        yield f"launcher {spec.launcher} (it starts one worker per trial)"
    if needs.memory_bytes and not can.limits_memory:
        yield "resources.memory (it cannot limit memory)"
    if needs.cpus and not can.limits_cpu:
        yield "resources.cpus (it cannot limit CPUs)"
