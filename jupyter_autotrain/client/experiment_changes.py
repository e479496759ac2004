"""Changes of an experiment: requests to its manager, each kept in the store until answered; the receipt of a stop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack, cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue, from_json, to_json
from jupyter_autotrain.client import manager_client
from jupyter_autotrain.client.experiment_files import ExperimentFiles
from jupyter_autotrain.core.backend import CancelReceipt
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Direction
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Store

_TIMEOUT_S = 30.0


class Changes(TypedDict, total=False):
    """The numbers of an experiment that may change; what is None stays.

    Attributes:
        trials: How many trials in all. The new ones are those that it would have had at once.
        concurrency: How many of them run at the same time.
        time_s: Its budget of time, counted from its begin, or from where it was begun again.
        failures: Its budget of failed trials.
        priority: Its waiting trials go before those of a lower one.
        weight: Its share beside others of its priority.
    """

    trials: int | None
    concurrency: int | None
    time_s: float | None
    failures: int | None
    priority: int | None
    weight: float | None


class ExperimentChanges(ExperimentFiles):
    """The changes of one experiment, running or ended.

    Each method raises `ManagerError` where the manager refuses, or does not answer in time; then the request stays.
    """

    def __init__(self, home: Home, store: Store, experiment_id: str, variables: Mapping[str, str]) -> None:
        super().__init__(home, store, experiment_id)
        # Where secrets are looked up again after a restart of the manager; their values are not kept.
        self._variables = variables

    def retry(self, timeout_s: float = _TIMEOUT_S) -> list[int]:
        """Run its failed, cancelled, preempted and lost trials again, each as a new attempt; gives their numbers."""
        return _numbers(self._ask("retry", {}, timeout_s))

    def resume(self, timeout_s: float = _TIMEOUT_S) -> list[int]:
        """Go on with it after a stop: with its stopped trials from their checkpoints, then with those not yet created.

        Returns:
            The numbers of the stopped trials that run again.
        """
        return _numbers(self._ask("resume", {}, timeout_s))

    def update(self, timeout_s: float = _TIMEOUT_S, **changes: Unpack[Changes]) -> None:
        """Change how many trials it has and its place in the queue, while it runs or after its end.

        Args:
            timeout_s: The longest wait for the manager.
            changes: What changes, see `Changes`.
        """
        args = {name: value for name, value in changes.items() if value is not None}
        self._ask("update", cast("JsonObject", args), timeout_s)

    def continue_from(
        self, trials: Sequence[int], params: Mapping[str, JsonValue] | None = None, timeout_s: float = _TIMEOUT_S
    ) -> list[int]:
        """Add a trial for each of these, which goes on from its checkpoint, with some parameters changed.

        Args:
            trials: The numbers of the trials to go on from; they may still run.
            params: The parameters that change, by name; they may lie outside of the search space.
            timeout_s: The longest wait for the manager.

        Returns:
            The numbers of the new trials.
        """
        args: JsonObject = {"trials": [*trials], "params": to_json(params or {})}
        return _numbers(self._ask("continue", args, timeout_s))

    def best_trials(self, most: int) -> list[int]:
        """Return the numbers of the trials with the best values of the objective, the best first.

        Raises:
            AutotrainError: No trial has a value.
        """
        objective = self.record.spec.objective
        valued = [trial for trial in self.store.trials(self.id) if trial.value is not None]
        if objective is None or not valued:
            raise AutotrainError(
                f"{self.name} has no trial with a value of its objective.", "One was expected.", "Name trials instead."
            )
        sign = -1.0 if objective.direction is Direction.MAXIMIZE else 1.0
        valued.sort(key=lambda trial: (sign * (trial.value or 0.0), trial.number))
        return [trial.number for trial in valued[:most]]

    def request(self, kind: str, args: JsonObject) -> int:
        """Keep a request for the manager without waiting for its answer; gives its id, for `store.request`.

        Args:
            kind: stop, retry, resume, update, continue or clean.
            args: Its arguments, such as `trials`.

        Raises:
            ManagerError: It is kept, and no manager can be started to answer it.
        """
        secrets = self._secret_values()  # first: a manager may have deleted it when `post` returns
        request_id = manager_client.post(self.store, self.home, (kind, self.id, args))
        manager_client.ensure_manager(self.home, self.id, secrets)
        return request_id

    def ensure_manager(self) -> None:
        """Make sure that a manager serves it and knows its secrets, as far as they are set here.

        Raises:
            ManagerError: It cannot be started, or does not take the secrets.
        """
        manager_client.ensure_manager(self.home, self.id, self._secret_values())

    def _secret_values(self) -> dict[str, str]:
        names = self.record.spec.secret_names
        return {name: self._variables[name] for name in names if name in self._variables}

    def _ask(self, kind: str, args: JsonObject, timeout_s: float) -> JsonObject:
        self.ensure_manager()
        return manager_client.ask(self.store, self.home, (kind, self.id, args), timeout_s)


def _numbers(answer: JsonObject) -> list[int]:
    return [*from_json(tuple[int, ...], answer.get("trials", []))]


@dataclass(frozen=True, slots=True, repr=False)
class StopReceipt(CancelReceipt):
    """Proof of a stop: which processes were ended, which needed force, which are left, and how long it took.

    Its text, which a notebook shows where it is the value of a cell, is one line, and one for each warning.

    Attributes:
        name: What was stopped.
        unreported: The stopped trials of which it is not known which processes ended.
        warnings: What the stopped trials warned of.
        left_there: What stopped trials have left where they ran, a sentence for each place.
        pending: What has not ended yet though its node answers, a sentence for each place.
        unreachable: Nodes that do not answer, a sentence each: what goes on there is stopped as soon as they do.
    """

    name: str = ""
    unreported: tuple[int, ...] = ()
    warnings: tuple[str, ...] = ()
    unreachable: tuple[str, ...] = ()
    left_there: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()

    @classmethod
    def of(
        cls, name: str, result: JsonObject, warnings: Sequence[str] = (), left_there: Sequence[str] = ()
    ) -> StopReceipt:
        """Read the manager's answer to a stop request of the experiment `name`, whose trials warned of something."""
        more = {"name": name, "warnings": list(warnings), "left_there": list(left_there)}
        return from_json(cls, {**result, **more})

    def __str__(self) -> str:
        later = [f"{sentence} until it does: then they are stopped." for sentence in self.unreachable]
        return "\n".join([self._sentence(), *self.left_there, *later, *self.pending, *self.warnings])

    def _sentence(self) -> str:
        ended = sorted({*self.pids_ended, *self.pids_killed})
        if not ended and not self.pids_left and not self.unreported:
            if self.note:
                return f"{self.name}: {self.note}; no process was running."
            if self.unreachable or self.pending:
                return f"{self.name}: the stop is noted; no process has been ended yet."
        text = f"{self.name}: stopped in {self.elapsed_s:.1f} s; {self._told_of(ended)}{self._left()}."
        return f"{text} {self.note}".rstrip()

    def _told_of(self, ended: list[int]) -> str:
        if ended:
            by_force = f", {len(self.pids_killed)} of them by force" if self.pids_killed else ""
            return f"{_count(ended)} ended ({_listed(ended)}){by_force}"
        if not self.unreported:
            return "no process was running"
        return f"which processes of trial {', '.join(map(str, self.unreported))} ended is not known"

    def _left(self) -> str:
        if self.pids_left:
            return f"; STILL THERE: {_listed(sorted(self.pids_left))}"
        if self.unreachable or self.pending:
            return ""
        return "; no process is left" if self.left_there else "; nothing is left"

    def __repr__(self) -> str:
        return str(self)


def _count(pids: list[int]) -> str:
    return "1 process" if len(pids) == 1 else f"{len(pids)} processes"


def _listed(pids: list[int], most: int = 12) -> str:
    more = f" and {len(pids) - most} more" if len(pids) > most else ""
    return f"pid{'s' if len(pids) > 1 else ''} {', '.join(map(str, pids[:most]))}{more}"
