"""Which checkpoints a trial goes on from that only another backend has."""

from __future__ import annotations

from collections.abc import Callable

from jupyter_autotrain.backends.earlier_checkpoints import from_last_saved
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.kept_checkpoints import KeptCheckpoints
from jupyter_autotrain.core.profile import BackendChoice
from jupyter_autotrain.core.spec import TrialSpec
from jupyter_autotrain.manager.attempt import Attempt
from jupyter_autotrain.manager.checkpoint_move import CheckpointMove, begun_anew
from jupyter_autotrain.manager.experiment_run import ExperimentRun


def kept_elsewhere(run: ExperimentRun, number: int) -> KeptCheckpoints | None:
    """The last checkpoints of a trial's attempts before, as far as only a backend has them."""
    context = BackendContext(run.context.home)
    trial = from_last_saved(run.trial_spec(number), context, lambda attempt: _kept(run, number, attempt) is not None)
    return None if trial.resume_attempt is None else _kept(run, number, trial.resume_attempt)


def _kept(run: ExperimentRun, number: int, attempt: int) -> KeptCheckpoints | None:
    """What is noted of an attempt; None where that is nothing, or another's."""
    kept = KeptCheckpoints.read(run.context.home.trial(run.id, number, attempt))
    names = {choice.profile.name for choice in run.record.spec.backends}
    is_own = kept is not None and kept.ref.backend in names and kept.ref.job_id == f"{run.id}-{number}-{attempt}"
    return kept if is_own and kept is not None and kept.sizes else None


def begin_move(run: ExperimentRun, attempt: Attempt, find: Callable[[BackendChoice], Backend | str]) -> TrialSpec:
    """Give an attempt its move where another backend has its checkpoints; gives what is submitted.

    Args:
        run: The experiment.
        attempt: The attempt; one that is only submitted to be cancelled, as it may run already, needs none.
        find: Gives a backend, or why it cannot be used.
    """
    trial = attempt.trial
    attempt.move = None
    kept = kept_elsewhere(run, trial.number)
    if kept is None or kept.ref.backend == attempt.placement.backend:
        return trial
    if attempt.final_state is not None:
        return begun_anew(trial, kept, "it is to be stopped")
    backend = find(run.record.spec.choice(kept.ref.backend))
    if isinstance(backend, str):
        return begun_anew(trial, kept, backend)
    saved_by = int(kept.ref.job_id.rpartition("-")[2])
    directory = run.context.home.trial(run.id, trial.number, saved_by)
    attempt.move = CheckpointMove(kept, backend, directory, run.context.clocks)
    return trial
