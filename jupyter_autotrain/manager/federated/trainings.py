"""The federated trainings of a home: each has a coordinator, which learns where its clients run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from jupyter_autotrain.agent import files
from jupyter_autotrain.agent.states import FinalState, TrialState
from jupyter_autotrain.core.backend import Backend
from jupyter_autotrain.core.federated import RoundNews
from jupyter_autotrain.core.profile import BackendChoice
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.manager.experiment_run import ExperimentRun
from jupyter_autotrain.store import Ingest

if TYPE_CHECKING:
    from jupyter_autotrain.manager.federated.coordinator import Coordinator

_STREAM = "global"  # what a round brings counts as read from it, so that no round counts twice


class FederatedTrainings:
    """The coordinators, by experiment.

    Args:
        emit: Takes the news of all of them.
    """

    def __init__(self, emit: Callable[[RoundNews], None]) -> None:
        self._emit = emit
        self._coordinators: dict[str, Coordinator] = {}

    def follow(self, run: ExperimentRun, backend_of: Callable[[BackendChoice], Backend | str]) -> None:
        """Tell an experiment's coordinator which clients run; end an experiment that has too few left."""
        spec = run.record.spec.federated
        if spec is None:
            return
        from jupyter_autotrain.manager.federated.client_link import ClientJob  # noqa: PLC0415 - NumPy is slow to import
        from jupyter_autotrain.manager.federated.coordinator import Coordinator  # noqa: PLC0415 - as above

        coordinator = self._coordinators.get(run.id)
        if coordinator is None:
            folder = run.context.home.federated(run.id)
            files.make_directories(folder)
            coordinator = self._coordinators[run.id] = Coordinator(run.id, spec, folder, self._emit)
            coordinator.start()
        jobs = {}
        for number, attempt in run.attempts.items():
            if attempt.ref is not None and attempt.final_state is None:
                backend = backend_of(run.choice(attempt))
                if not isinstance(backend, str):
                    jobs[number] = ClientJob(number, attempt.trial.job_id, backend, attempt.ref)
        coordinator.set_clients(jobs, len(run.active))
        is_short = run.closed and len(run.active) < spec.min_clients
        if is_short and run.active and not coordinator.is_over and not run.stopping:
            left = count(len(run.active), "client")
            reason = f"round {coordinator.round} needs {spec.min_clients} clients; {left} left"
            run.cancel_all(FinalState(TrialState.FAILED, reason))

    def forget(self, experiment_id: str) -> None:
        """End the coordinator of an experiment that is over."""
        if coordinator := self._coordinators.pop(experiment_id, None):
            coordinator.close()


def take_news(run: ExperimentRun, news: RoundNews) -> None:
    """Store the curves of the global model, with the first client; tell refused clients; end what has failed."""
    now_s = run.now_s()
    rows = []
    if news.round:
        points = [(name, news.round, now_s, value) for name, value in news.metrics.items()]
        attempt = run.trials[1].attempt
        objective = run.record.spec.objective
        rows.append(Ingest(run.id, 1, attempt, _STREAM, news.round, points, objective=objective))
    for number, text in news.refused.items():
        note = (now_s, "warning", text, 1)
        rows.append(Ingest(run.id, number, run.trials[number].attempt, _STREAM, 0, notes=[note], cursor_before=0))
    if rows:
        run.context.retry_store(run.context.store.ingest, rows)
    if news.failure:
        run.cancel_all(FinalState(TrialState.FAILED, news.failure))
