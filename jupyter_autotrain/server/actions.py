"""Operations that change something: each is kept durably before it is acknowledged, and a manager is there for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from jupyter_autotrain import manager
from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.client.submission import resubmit
from jupyter_autotrain.errors import AutotrainError, ManagerError, StoreError
from jupyter_autotrain.server.context import ServerContext, check_owner
from jupyter_autotrain.server.endpoint import Answer, Asked, Endpoint, ExperimentAsked
from jupyter_autotrain.server.problems import ProblemError, not_found, problem

_RESOURCE: Final = "autotrain.actions"
_RESUMED: Final = frozenset({TrialState.CANCELLED, TrialState.PREEMPTED, TrialState.LOST})
_RETRIED: Final = _RESUMED | {TrialState.FAILED}

TrialNumber = Annotated[int, Field(ge=1, le=10**9)]


class ActionAsked(ExperimentAsked):
    """An action on an experiment, or on some of its trials."""

    action: Literal["stop", "retry", "resume", "rerun", "continue"] = Field(
        description="retry: failed, cancelled, preempted and lost trials again; resume: those that did not fail, and "
        "those not yet created; "
        "rerun: the stored cell as a new experiment; continue: a new trial for each of these, from its checkpoint."
    )
    trials: list[TrialNumber] | None = Field(None, min_length=1, max_length=10_000)
    params: dict[str, Any] = Field(
        {}, max_length=1_000, description="Of `continue`: the parameters that change, by name."
    )
    grace_s: float = Field(5.0, ge=0, le=3600, description="How long a stopped trial may take to end itself.")


class RequestAsked(Asked):
    """A request that was kept."""

    request: int = Field(ge=1, le=1 << 53)


def act(server: ServerContext, asked: ActionAsked) -> Answer:
    """Keep the action for the manager; `rerun` submits a new experiment."""
    with server.writing(asked.experiment) as experiment:
        return _ACTIONS[asked.action](server, experiment, asked)


def _stop(_: ServerContext, experiment: Experiment, asked: ActionAsked) -> Answer:
    if experiment.state.is_final:
        raise _refused(experiment, "A running experiment was expected.", "Nothing is left to stop.")
    args: dict[str, JsonValue] = {"grace_s": asked.grace_s}
    if asked.trials is not None:
        args["trials"] = asked.trials
    return _kept(experiment, "stop", args)


def _retry(_: ServerContext, experiment: Experiment, asked: ActionAsked) -> Answer:
    return _again(experiment, asked, _RETRIED)


def _resume(_: ServerContext, experiment: Experiment, asked: ActionAsked) -> Answer:
    if asked.trials is None and len(experiment.trials) < experiment.record.spec.trials:
        return _kept(experiment, "resume", {})
    return _again(experiment, asked, _RESUMED)


def _again(experiment: Experiment, asked: ActionAsked, states: frozenset[TrialState]) -> Answer:
    numbers = [trial.number for trial in experiment.trials if trial.state in states]
    if asked.trials is not None:
        numbers = [number for number in numbers if number in set(asked.trials)]
    if not numbers:
        kinds = ", ".join(sorted(state.value for state in states))
        raise _refused(experiment, f"A trial that is {kinds} was expected.", "There is nothing to run again.")
    return _kept(experiment, "retry", {"trials": numbers})


def _rerun(server: ServerContext, experiment: Experiment, _: ActionAsked) -> Answer:
    submitted = resubmit(server.home, experiment.record, server.environ)
    try:
        return Answer({"experiment": submitted.id, "name": submitted.name}, status=HTTPStatus.ACCEPTED)
    finally:
        submitted.store.close()


def _continue(_: ServerContext, experiment: Experiment, asked: ActionAsked) -> Answer:
    if asked.trials is None:
        raise _refused(experiment, "The trials to go on from were expected.", "Name them in `trials`.")
    return _kept(experiment, "continue", {"trials": [*asked.trials], "params": asked.params})


_Action = Callable[[ServerContext, Experiment, ActionAsked], Answer]
_ACTIONS: Final[Mapping[str, _Action]] = MappingProxyType(
    {"stop": _stop, "retry": _retry, "resume": _resume, "rerun": _rerun, "continue": _continue}
)


def clean(server: ServerContext, asked: ExperimentAsked) -> Answer:
    """Delete an experiment that has ended, with all its files."""
    with server.writing(asked.experiment) as experiment:
        if not experiment.state.is_final:
            raise _refused(experiment, "Only an experiment that has ended can be deleted.", "Stop it first.")
        return _kept(experiment, "clean", {})


def show_request(server: ServerContext, asked: RequestAsked) -> Answer:
    """Tell whether the manager has answered, and give its answer."""
    with server.stores.reading() as store:
        try:
            request = store.request(asked.request)
        except StoreError:
            raise not_found(f"request {asked.request}", "The id that an action was answered with.") from None
    return Answer({"kind": request.kind, "done": request.done, "result": request.result})


def show_manager(server: ServerContext, _: Asked) -> Answer:
    """Tell whether the manager of the home lives."""
    check_owner(server.home)
    status = manager.status(server.home)
    return Answer({"alive": status.alive, "host": status.host, "resident_bytes": status.resident_bytes})


def start_manager(server: ServerContext, asked: Asked) -> Answer:
    """Start the manager where none lives."""
    check_owner(server.home)
    if not server.home.store.is_file():
        raise problem(HTTPStatus.CONFLICT, "There is no experiment yet.", "A manager has nothing to do.", "Submit one.")
    manager.ensure(server.home)
    return show_manager(server, asked)


def _kept(experiment: Experiment, kind: str, args: JsonObject) -> Answer:
    try:
        return Answer({"request": experiment.request(kind, args)}, status=HTTPStatus.ACCEPTED)
    except ManagerError as error:
        kept = AutotrainError(error.found, f"The request to {kind} is kept and will be answered.", error.action)
        raise ProblemError(HTTPStatus.SERVICE_UNAVAILABLE, kept) from None


def _refused(experiment: Experiment, expected: str, action: str) -> ProblemError:
    return problem(HTTPStatus.CONFLICT, f"{experiment.name} is {experiment.state}.", expected, action)


ENDPOINTS: Final = (
    Endpoint(
        "POST", "/experiments/{experiment}/actions", _RESOURCE, "Stop, retry, resume or rerun", ActionAsked, act,
        status=HTTPStatus.ACCEPTED,
    ),
    Endpoint(
        "DELETE", "/experiments/{experiment}", _RESOURCE, "Delete an experiment with its files", ExperimentAsked, clean,
        {"request": "integer"}, status=HTTPStatus.ACCEPTED,
    ),
    Endpoint(
        "GET", "/requests/{request}", _RESOURCE, "The manager's answer to an action", RequestAsked, show_request,
        {"kind": "string", "done": "boolean", "result": "object"},
    ),
    Endpoint(
        "GET", "/manager", _RESOURCE, "Whether the manager lives", Asked, show_manager, {"alive": "boolean"},
    ),
    Endpoint(
        "POST", "/manager", _RESOURCE, "Start the manager where none lives", Asked, start_manager,
        {"alive": "boolean"},
    ),
)  # fmt: skip
