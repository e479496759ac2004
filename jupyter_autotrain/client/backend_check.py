"""A true round trip to a backend: its own steps, then on every node a tiny trial whose metric comes back."""

from __future__ import annotations

import tempfile
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from jupyter_autotrain import backends, capture
from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.attempt import trial_spec
from jupyter_autotrain.core.backend import Backend, BackendContext, Cursor, JobRef, JobStatus
from jupyter_autotrain.core.backend_check import CheckableBackend, CheckStep, SteppedBackend, StepTimer
from jupyter_autotrain.core.capabilities import LeftoverBackend, TrialFilesBackend
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.core.spec import ExperimentSpec, NodePlacement, Placement, TrialSpec
from jupyter_autotrain.errors import AutotrainError, BackendError

_CODE = "report(step=1, answer=42)\n"
_METRIC = b"answer"  # in its frame
_GRACE_S = 2.0
_METRIC_S = 10.0
_POLL_S = 0.05
_LOOK_S = 0.5
_GONE_S = 60.0  # within so long a place deletes what it deletes in the background
TRIAL_S = 60.0  # most that the tiny trial may take, with its wait in a queue


def _never() -> bool:
    return False


def check_backend(
    profile: Profile, nodes: Sequence[str] = (), should_stop: Callable[[], bool] = _never
) -> Generator[CheckStep, None, None]:
    """Check a backend from end to end; what it leaves is deleted, also where the generator is closed early.

    Args:
        profile: The backend.
        nodes: Which of its nodes; all where none is given.
        should_stop: Whether to wait no longer for the tiny trial.
    """
    timer = StepTimer("")
    timer.begin("make")
    with tempfile.TemporaryDirectory(prefix="autotrain-check-") as folder:
        try:
            backend = backends.create(profile, BackendContext(Home(Path(folder))))
        except AutotrainError as error:
            yield timer.refused(error)
            return
        with closing(backend):
            yield from _RoundTrip(backend, profile, Home(Path(folder)), should_stop).steps(nodes)


def _until_bad(steps: Iterable[CheckStep]) -> Generator[CheckStep, None, bool]:
    """Yield steps up to the first that failed; give whether none did."""
    for step in steps:
        yield step
        if not step.is_good:
            return False
    return True


class _RoundTrip:
    """Checks one backend, node by node."""

    def __init__(self, backend: Backend, profile: Profile, home: Home, should_stop: Callable[[], bool]) -> None:
        self._backend = backend
        self._profile = profile
        self._home = home
        self._should_stop = should_stop
        self._experiment = ""
        self._was_there: frozenset[str] = frozenset()  # before the tiny trial
        self._unlisted = ""  # why it is not known what is there

    def steps(self, nodes: Sequence[str]) -> Iterator[CheckStep]:
        """All steps of all nodes."""
        own = self._backend if isinstance(self._backend, CheckableBackend) else None
        names = nodes or (own.node_names() if own else ())
        if own is None and not (yield from _until_bad(self._steps_of_all())):
            return
        for node in names or [""]:
            if own is None or (yield from _until_bad(own.check_node(node))):
                yield from self._trial(node, own)

    def _steps_of_all(self) -> Iterator[CheckStep]:
        return self._backend.check_steps() if isinstance(self._backend, SteppedBackend) else self._probe()

    def _probe(self) -> Iterator[CheckStep]:
        timer = StepTimer("")
        timer.begin("probe")
        probe = self._backend.probe()
        yield timer.done(probe.reason) if probe.usable else timer.failed(probe.reason)
        if not probe.usable:
            return
        timer.begin("discover")
        try:
            found = self._backend.discover().nodes
        except AutotrainError as error:
            yield timer.refused(error)
            return
        gpus = sum(len(node.accelerators) for node in found)
        yield timer.done(f"nodes: {', '.join(node.name for node in found) or 'none'}; GPUs: {gpus}")

    def _trial(self, node: str, own: CheckableBackend | None) -> Iterator[CheckStep]:
        """Yield a tiny trial, from its bundle to its metric; nothing of it is left."""
        timer = StepTimer(node)
        ref = None
        try:
            trial = self._made(timer)
            if own is not None:
                timer.begin("upload")
                own.upload(node, self._home.bundle(trial.experiment_id))
                yield timer.done("a bundle was sent")
            self._was_there = self._objects()
            timer.begin("tiny trial")
            placement = Placement((NodePlacement(node),) if node else (), self._profile.name)
            ref = self._backend.submit(trial, placement, {})
            status = self._ended(ref)
            if status.state is not TrialState.SUCCEEDED:
                raise self._failure(status)
            yield timer.done("started, ran and ended")
            timer.begin("metric back")
            self._read_metric(ref)
            yield timer.done("its metric was read")
        except AutotrainError as error:
            yield timer.refused(error)
        except GeneratorExit:  # nobody wants the rest
            if ref is not None:
                self._clean(timer, ref, own)
            raise
        if ref is not None:
            yield self._clean(timer, ref, own)

    def _made(self, timer: StepTimer) -> TrialSpec:
        timer.begin("bundle")
        name = self._experiment = uuid.uuid4().hex
        captured = capture.capture(_CODE, {}, cwd=self._home.root, label="check")
        bundle = capture.write_bundle(captured, self._home.bundle(name))
        spec = ExperimentSpec("check", bundle, backends=(BackendChoice(self._profile),))
        return trial_spec(spec, TrialRecord(name, 1, TrialState.WAITING, {}))

    def _ended(self, ref: JobRef) -> JobStatus:
        deadline_s = time.monotonic() + TRIAL_S
        while not (status := self._backend.poll([ref])[0]).state.is_final:
            if self._should_stop():
                raise BackendError(f"It is {status.state}, and the check was cancelled.")
            if time.monotonic() > deadline_s:
                raise BackendError(
                    f"It did not end within {TRIAL_S:.0f} s; it is {status.state}. {status.doubt or status.reason}",
                    "A trial that ends.",
                    "It may wait in a queue, or the node may have stopped to answer: check again later.",
                )
            time.sleep(_POLL_S)
        return status

    def _failure(self, status: JobStatus) -> BackendError:
        return BackendError(
            f"It is {status.state}: {status.doubt or status.reason or 'no reason is known'}",
            "A trial that succeeds.",
            self._last_words(status.ref) or "Run a cell there and look at %autotrain logs.",
        )

    def _read_metric(self, ref: JobRef) -> None:
        deadline_s = time.monotonic() + _METRIC_S
        while _METRIC not in (chunk := self._backend.read([Cursor(ref, wire.METRICS, 0)])[0]).data:
            if time.monotonic() > deadline_s:
                found = f"The metric did not arrive within {_METRIC_S:.0f} s: "
                raise BackendError(found + (chunk.fault or f"{len(chunk.data)} bytes came"))
            time.sleep(_POLL_S)

    def _last_words(self, ref: JobRef) -> str:
        (chunk,) = self._backend.read([Cursor(ref, wire.STDERR, 0)])
        lines = chunk.data.decode(errors="replace").strip().splitlines()
        return f"It said last: {lines[-1][:200]}" if lines else ""

    def _clean(self, timer: StepTimer, ref: JobRef, own: CheckableBackend | None) -> CheckStep:
        timer.begin("clean")
        try:
            left = [f"process {pid}" for pid in self._backend.cancel(ref, _GRACE_S).pids_left]
            if own is not None:
                own.remove(ref)
            else:
                left += [*self._objects_left(), *self._folders_left()]
        except AutotrainError as error:
            return timer.refused(error)
        if left:
            return timer.failed(f"this is left: {', '.join(left)}", "Look again later, then delete it.")
        if self._unlisted:
            return timer.done(f"its trial has ended; whether all of it is gone is not known: {self._unlisted}")
        return timer.done("nothing of it is left: no process, no object, no folder")

    def _objects(self) -> frozenset[str]:
        """Return the objects of the check's home at its place, and what is nobody's there."""
        try:
            return frozenset(self._backend.leftovers(()) if isinstance(self._backend, LeftoverBackend) else ())
        except BackendError as error:
            self._unlisted = error.found
            return frozenset()

    def _objects_left(self) -> Sequence[str]:
        """Look until no object of the check is there any more; gives those that stay."""
        deadline_s = time.monotonic() + _GONE_S
        while left := self._objects() - self._was_there:
            if time.monotonic() > deadline_s:
                break
            time.sleep(_LOOK_S)
        return sorted(left)

    def _folders_left(self) -> Sequence[str]:
        """Remove what the tiny trial has at its place, and look whether that is gone."""
        if not isinstance(self._backend, TrialFilesBackend):
            return ()
        self._backend.remove_experiments([self._experiment])
        return [f"the folder of {name}" for name in self._backend.experiments_there() if name == self._experiment]
