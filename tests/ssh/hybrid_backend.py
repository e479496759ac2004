"""Several backends behind the interface of one: the manager's own placement decides where each trial goes."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import astuple, replace
from functools import reduce

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.backend import (
    Backend,
    BackendContext,
    CancelReceipt,
    Chunk,
    Cursor,
    JobRef,
    JobStatus,
    Probe,
    Submission,
)
from jupyter_autotrain.core.capabilities import Capabilities, PollInterval
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.inventory import Inventory
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.core.records import ExperimentRecord, TrialRecord
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, Placement, TrialSpec
from jupyter_autotrain.core.tuner import Tuner
from jupyter_autotrain.manager.backend_pool import BackendPool
from jupyter_autotrain.manager.context import Clocks, Factories, ManagerContext, Threads
from jupyter_autotrain.manager.experiment_run import ExperimentRun
from jupyter_autotrain.manager.jobs.events import Discovered, Event
from jupyter_autotrain.manager.recovery import recover_run
from jupyter_autotrain.manager.trial_start import Placed, TrialPlacer
from jupyter_autotrain.store import Store
from jupyter_autotrain.testing import wait_until

_EXPERIMENT = "placed"


class HybridBackend:
    """Passes each call on to the backend that has the trial.

    A trial's placement is stored before it is submitted, as the manager stores it; a further instance reads it there.

    Args:
        choices: The backends of an experiment, with their limits and preferences.
        context: The home.
        create: Makes one of them.
    """

    poll_interval = PollInterval()

    def __init__(
        self,
        choices: Sequence[BackendChoice],
        context: BackendContext,
        create: Callable[[Profile, BackendContext], Backend],
    ) -> None:
        self._choices = choices
        self._home = context.home
        self.backends = {choice.profile.name: create(choice.profile, context) for choice in choices}
        self.name = choices[0].profile.name
        self.capabilities = _common([backend.capabilities for backend in self.backends.values()])

    def probe(self) -> Probe:
        found = [backend.probe() for backend in self.backends.values()]
        return next((one for one in found if not one.usable), found[-1])

    def discover(self) -> Inventory:
        found = [backend.discover() for backend in self.backends.values()]
        nodes = tuple(node for one in found for node in one.nodes)
        return Inventory(nodes, limits="; ".join(one.limits for one in found))

    def render(self, trial: TrialSpec, placement: Placement) -> Submission:
        return self.backends[self.name].render(trial, placement)

    def submit(self, trial: TrialSpec, placement: Placement, secrets: Mapping[str, str]) -> JobRef:
        decided = self._placed(trial)
        if placement.nodes:  # asked for by name
            decided = replace(placement, backend=self._backend_with(placement.nodes[0].node))
        return self.backends[decided.backend].submit(trial, decided, secrets)

    def _backend_with(self, node: str) -> str:
        for name, backend in self.backends.items():
            if node in {found.name for found in backend.discover().nodes}:
                return name
        raise AssertionError(f"no backend has {node}")

    def _placed(self, trial: TrialSpec) -> Placement:
        """Where the manager puts a trial; where an attempt of it has been put, its checkpoints are, and it stays."""
        with self._only_manager(), closing(Store.open(self._home)) as store, ThreadPoolExecutor() as threads:
            run = recover_run(self._manager_context(store), _record(store, self._choices))
            name = f"{trial.experiment_id}-{trial.number}"
            for known in run.trials.values():
                if known.params["name"] == name:
                    return known.placement
            number = len(run.trials) + 1
            run.add_trial(number, {"name": name})
            placed = self._place(run, number, threads)
            placement = replace(placed.reservation.placement, backend=placed.choice.profile.name)
            run.change_state(number, TrialState.PREPARING, placed.reason, placement=placement)
            return placement

    def _place(self, run: ExperimentRun, number: int, threads: Executor) -> Placed:
        events: list[Event] = []
        pool = BackendPool(run.context, events.append, Threads(lambda: threads, threads), start_watchers=False)
        placer = TrialPlacer(pool)
        pool.open(run)

        def found() -> Placed | None:
            while events:
                event = events.pop()
                assert isinstance(event, Discovered)
                pool.discovered(event)
            placer.begin_round()
            answer = placer.place(run, number)
            return answer if isinstance(answer, Placed) else None

        return wait_until(found, "a place for the trial")

    @contextmanager
    def _only_manager(self) -> Iterator[None]:
        self._home.root.mkdir(mode=0o700, exist_ok=True)
        with self._home.root.with_name("placing").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _manager_context(self, store: Store) -> ManagerContext:
        factories = Factories(lambda profile, _: self.backends[profile.name], _no_tuner, lambda _: None)
        # Time stands still: no backend is passed over because its first answer takes long.
        return ManagerContext(self._home, store, Clocks(time.time, lambda: 0.0, time.sleep), factories)

    def poll(self, refs: Sequence[JobRef]) -> list[JobStatus]:
        found = [status for ref in refs for status in self._of(ref).poll([ref])]
        for status in found:
            if status.state.is_final and not status.doubt:
                self._follow(status)
        return found

    def _follow(self, status: JobStatus) -> None:
        """Store a trial's end, by which the next one is placed."""
        with self._only_manager(), closing(Store.open(self._home)) as store:
            for trial in _trials(store):
                is_it = status.ref.job_id.startswith(f"{trial.params['name']}-")
                if is_it and not trial.state.is_final:
                    store.change_state(_EXPERIMENT, trial.number, status.state, time.time())

    def read(self, cursors: Sequence[Cursor]) -> list[Chunk]:
        return [chunk for cursor in cursors for chunk in self._of(cursor.ref).read([cursor])]

    def put(self, ref: JobRef, path: str, data: bytes) -> None:
        self._of(ref).put(ref, path, data)

    def fetch(self, ref: JobRef, path: str, target: str) -> None:
        self._of(ref).fetch(ref, path, target)

    def sizes(self, ref: JobRef, path: str) -> dict[str, int]:
        return self._of(ref).sizes(ref, path)

    def missing_paths(self, paths: Sequence[str]) -> list[tuple[str, str]]:
        return [found for backend in self.backends.values() for found in backend.missing_paths(paths)]

    def cancel(self, ref: JobRef, grace_s: float) -> CancelReceipt:
        return self._of(ref).cancel(ref, grace_s)

    def close(self) -> None:
        for backend in self.backends.values():
            backend.close()

    def _of(self, ref: JobRef) -> Backend:
        return self.backends[ref.backend]


def _trials(store: Store) -> list[TrialRecord]:
    return store.trials(_EXPERIMENT) if any(one.id == _EXPERIMENT for one in store.experiments()) else []


def _record(store: Store, choices: Sequence[BackendChoice]) -> ExperimentRecord:
    """Return the experiment that all trials are placed for."""
    known = [one for one in store.experiments() if one.id == _EXPERIMENT]
    spec = ExperimentSpec("placed", Bundle(), backends=tuple(choices))
    return known[0] if known else store.add_experiment(_EXPERIMENT, spec, time.time(), BootTime.now())


def _common(found: Sequence[Capabilities]) -> Capabilities:
    """Return what all of them can do."""
    return reduce(lambda one, other: Capabilities(*map(min, astuple(one), astuple(other))), found)


def _no_tuner(spec: ExperimentSpec) -> Tuner:
    raise AssertionError(f"{spec.name} searches nothing")
