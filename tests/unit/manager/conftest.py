"""A simulated world: a backend that runs nothing, a clock set by the tests, and a manager stepped by hand."""

from __future__ import annotations

import json
from concurrent.futures import Executor, Future
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.backend import CancelReceipt, Chunk, JobRef, JobStatus, Probe
from jupyter_autotrain.core.capabilities import Capabilities, PollInterval
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.inventory import Inventory, Node
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import BackendError, BackendUnavailableError, SubmitUnknownError
from jupyter_autotrain.manager.context import Clocks, Factories, ManagerContext, Threads
from jupyter_autotrain.manager.jobs.events import EventQueue
from jupyter_autotrain.manager.manager import Manager
from jupyter_autotrain.store import Store


class Inline(Executor):
    """Calls at once, in the caller's thread."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        future.set_result(fn(*args, **kwargs))
        return future


@dataclass
class Job:
    trial: object
    placement: object
    secrets: dict
    state: TrialState = TrialState.RUNNING
    reason: str = ""
    metrics: bytes = b'["v", 1]\n'
    stdout: bytes = b""
    starts: int = 1
    detail: dict = field(default_factory=dict)
    files: dict = field(default_factory=dict)

    def report(self, step=1, **values):
        self.metrics += json.dumps(["m", step, 100.0 + step, values]).encode() + b"\n"

    def end(self, state=TrialState.SUCCEEDED, reason="", **detail):
        self.state = state
        self.reason = reason
        self.detail = detail


class SimulatedBackend:
    """A backend in memory; all its instances share the jobs, as those of a real backend do."""

    def __init__(self):
        self.jobs: dict[str, Job] = {}
        self.inventory = Inventory((Node("here", 4.0, 8_000_000_000),))
        self.capabilities = Capabilities(gpu_slots=True, shares_home=True)
        self.poll_interval = PollInterval()
        self.name = "local"
        self.down = ""
        self.refuses = ""
        self.refusal = BackendError
        self.unusable = ""
        self.unusable_for_good = True
        self.silent = ""  # why its node does not answer: all jobs are doubtful, nothing can be told it
        self.silent_nodes = ()  # those of several nodes; none: all
        self.cancelled: list[str] = []

    def job(self, number, attempt=1):
        (found,) = [j for j in self.jobs.values() if (j.trial.number, j.trial.attempt) == (number, attempt)]
        return found

    def probe(self):
        return Probe(not self.unusable, self.unusable or "here", self.unusable_for_good)

    def discover(self):
        return self.inventory

    def submit(self, trial, placement, secrets):
        if self.refuses and self.refusal is not SubmitUnknownError:
            raise self.refusal(self.refuses)
        if trial.job_id in self.jobs:
            return JobRef(self.name, trial.job_id)
        self.jobs[trial.job_id] = Job(trial, placement, dict(secrets))
        if self.refuses:
            raise self.refusal(self.refuses)
        return JobRef(self.name, trial.job_id)

    def poll(self, refs):
        if self.down:
            raise BackendError(self.down)
        if self.silent:
            doubt = {"doubt": self.silent, "unreachable": True, "unreachable_nodes": self.silent_nodes}
            return [JobStatus(ref, TrialState.PREPARING, **doubt) for ref in refs]
        jobs = [(ref, self.jobs[ref.job_id]) for ref in refs]
        return [JobStatus(ref, job.state, job.reason, job.detail) for ref, job in jobs]

    def read(self, cursors):
        streams = ((c, getattr(self.jobs[c.ref.job_id], c.stream, b"")) for c in cursors)
        return [Chunk(c, data[c.offset : c.offset + 64]) for c, data in streams]

    def put(self, ref, path, data):
        self.jobs[ref.job_id].files[path] = data

    def fetch(self, ref, path, target):
        pass

    def cancel(self, ref, grace_s):
        if self.down or (self.silent and not self.silent_nodes):
            raise BackendUnavailableError(self.down or self.silent)
        if self.silent:
            return CancelReceipt(pids_ended=(201, 202), unreachable_nodes=self.silent_nodes)
        self.cancelled.append(ref.job_id)
        job = self.jobs[ref.job_id]
        if not job.state.is_final:
            job.end(TrialState.CANCELLED, "cancelled")
            return CancelReceipt(pids_ended=(100 + job.trial.number,), elapsed_s=0.1)
        return CancelReceipt(note="it had ended before")

    def close(self):
        pass


class World:
    def __init__(self, root):
        self.home = Home(root)
        self.store = Store.open(self.home)
        self.backend = SimulatedBackend()
        self.now = 1000.0
        self.jump_s = 0.0  # by how much somebody has set the wall clock forward
        self.tuner = self.early_stop = None
        self.pauses = []
        self.moves = Inline()
        self.create_backend = lambda: self.backend
        self.create_backend_of = lambda profile: self.create_backend()
        self.event_queue = EventQueue()
        self.restart()

    def close(self):
        self.event_queue.close()
        self.store.close()

    def restart(self):
        """Start a manager that knows nothing but the store, as after kill -9."""

        def pause(seconds):
            self.pauses.append(seconds)
            self.now += seconds

        clocks = Clocks(lambda: self.now + self.jump_s, lambda: self.now, pause, lambda: BootTime("boot", self.now))
        factories = Factories(
            lambda profile, context: self.create_backend_of(profile),
            lambda spec: self.tuner,
            lambda spec: self.early_stop,
        )
        self.event_queue.close()
        self.event_queue = EventQueue()
        context = ManagerContext(self.home, self.store, clocks, factories)
        self.manager = Manager(context, self.event_queue, Threads(Inline, self.moves), start_watchers=False)

    def submit(self, name="mnist", experiment_id=None, **spec):
        experiment_id = experiment_id or f"id{len(self.store.experiments())}"
        spec = ExperimentSpec(name=name, bundle=Bundle(), **spec)
        return self.store.add_experiment(experiment_id, spec, self.now).id

    def step(self, times=4, messages=()):
        """Let some time pass, with a look at each job and a turn of the manager."""
        for _ in range(times):
            self.now += 0.2
            for backend in self.manager._backend_pool._backends.values():
                backend.watcher.poll_due()
            self.manager.step(messages, read_store=True)

    def trials(self, experiment_id):
        return self.store.trials(experiment_id)

    def states(self, experiment_id):
        return [trial.state.value for trial in self.trials(experiment_id)]

    def request(self, kind, experiment_id, **args):
        return self.store.add_request(kind, experiment_id, args, self.now)


@pytest.fixture
def world(tmp_path):
    world = World(tmp_path / "home")
    yield world
    world.close()


@pytest.fixture(scope="session")
def new_world(tmp_path_factory):
    """Open worlds, for tests that need a fresh one per example."""

    @contextmanager
    def make():
        with closing(World(tmp_path_factory.mktemp("world") / "home")) as world:
            yield world

    return make
