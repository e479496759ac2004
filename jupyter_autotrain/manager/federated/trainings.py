"""The federated trainings of a home: each has a coordinator, which learns where its clients run."""

from __future__ import annotations

from collections.abc import Callable

from jupyter_autotrain.agent import files
from jupyter_autotrain.agent.states import FinalState, TrialState
from jupyter_autotrain.core.backend import Backend
from jupyter_autotrain.core.federated import RoundNews
from jupyter_autotrain.core.profile import BackendChoice
from jupyter_autotrain.core.text_format import count
from jupyter_autotrain.manager.experiment_run import ExperimentRun
from jupyter_autotrain.manager.federated.client_link import ClientJob
from jupyter_autotrain.manager.federated.coordinator import Coordinator


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
