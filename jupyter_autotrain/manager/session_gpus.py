"""The accelerators of sessions that hold them only while a cell runs: given back to the queue between cells.

A session says in its metrics when it wants them and when they are free. They are given to it before the trials that
wait, and as soon as none that runs has them; the same ones each time, since its process knows no others.
"""

from __future__ import annotations

from dataclasses import replace

from jupyter_autotrain.agent import wire
from jupyter_autotrain.core.profile import BackendChoice
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.manager.attempts import Attempt, nodes_of
from jupyter_autotrain.manager.backend_pool import BackendPool
from jupyter_autotrain.manager.experiment_run import ExperimentRun
from jupyter_autotrain.manager.queue.reservations import Reservation
from jupyter_autotrain.manager.queue.resource_request import ResourceRequest, Unschedulable
from jupyter_autotrain.manager.resources import resource_request


def follow(run: ExperimentRun, pool: BackendPool) -> None:
    """Give a session its accelerators where it wants them and they are free, or take them back; once in each round."""
    for attempt in run.attempts.values():
        if attempt.gpus_asked is None or attempt.gpus_asked == attempt.gpus_answered or attempt.ref is None:
            continue
        number, is_wanted = attempt.gpus_asked
        if is_wanted and not _give(run, attempt, pool):
            continue
        if is_wanted:
            choice = run.choice(attempt)
            pool.watcher(choice).put(attempt.trial.job_id, wire.GPUS_FILE, str(number).encode())
            run.blocked.pop(attempt.trial.number, None)
        else:
            _take_back(run, attempt, pool)
        attempt.gpus_answered = attempt.gpus_asked


def _take_back(run: ExperimentRun, attempt: Attempt, pool: BackendPool) -> None:
    """Leave a session its CPUs and its memory alone."""
    choice = run.choice(attempt)
    request = resource_request(run, attempt.trial.number, choice)
    rest = replace(request, resources=replace(request.resources, gpus=0, gpu_memory_bytes=None))
    nodes = tuple(replace(placed, accelerators=()) for placed in attempt.placement.nodes)
    pool.release(attempt)
    pool.reserve(Reservation(rest, Placement(nodes, attempt.placement.backend), choice.profile.key))


def _give(run: ExperimentRun, attempt: Attempt, pool: BackendPool) -> bool:
    """Reserve the accelerators of a session, or let it wait for them, before all trials of this round."""
    choice = run.choice(attempt)
    request = resource_request(run, attempt.trial.number, choice)
    pool.release(attempt)
    answer = pool.try_allocate(choice, _for_its_own(request, attempt, pool, choice))
    if isinstance(answer, Unschedulable):
        _take_back(run, attempt, pool)
        pool.allocator(choice).wait(request, answer)
        run.blocked[attempt.trial.number] = f"{answer.sentence}; its next cell runs then"
        return False
    pool.reserve(Reservation(request, attempt.placement, choice.profile.key))
    return True


def _for_its_own(
    request: ResourceRequest, attempt: Attempt, pool: BackendPool, choice: BackendChoice
) -> ResourceRequest:
    """Return the request for the accelerators that the session's process sees."""
    known = pool.accelerators(choice)
    indices = tuple(known[name] for name in attempt.placement.accelerators if name in known)
    others = pool.nodes(choice) - set(nodes_of(attempt.placement))
    refused = dict.fromkeys(others, "the session is not there")
    return replace(request, policy=replace(request.policy, gpu_indices=indices), refused=refused)
