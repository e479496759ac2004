"""The backends in use: for each a lane, and the bookkeeping of what its trials hold."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass

from jupyter_autotrain.core import wire
from jupyter_autotrain.core.states import TrialState
from jupyter_autotrain.manager.events import Discovered, Event, Silence
from jupyter_autotrain.manager.house import House
from jupyter_autotrain.manager.lane import Lane
from jupyter_autotrain.manager.resources import Grant, Pool
from jupyter_autotrain.manager.run import Run
from jupyter_autotrain.manager.task import Task

_FRESH_S = 2.0
_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Place:
    """`pool` decides only once the place has been discovered; who uses a GPU besides us is asked again when old."""

    lane: Lane
    pool: Pool
    known: bool = False
    asking: bool = False
    asked_s: float = 0.0
    silence: str = ""


class Places:
    """All backends that the experiments under way use."""

    def __init__(
        self, house: House, emit: Callable[[Event], None], executor: Executor, *, start_lanes: bool = True
    ) -> None:
        self._house, self._emit, self._executor, self._start_lanes = house, emit, executor, start_lanes
        self._places: dict[str, _Place] = {}

    def open(self, run: Run) -> None:
        """Make a run's backend ready, and hold what its trials hold. A backend that cannot be made ends the run."""
        name = run.record.spec.backend
        if name not in self._places:
            try:
                backend = self._house.patiently(self._house.doors.create_backend, name, self._house.home)
            except Exception as error:  # noqa: BLE001 - whatever a plugin raises becomes the reason
                _log.exception("backend %r cannot be made", name)
                run.lose(f"the backend {name!r} cannot be used: {error}")
                return
            lane = Lane(backend, self._emit, self._executor, self._house)
            self._places[name] = _Place(lane, Pool(None))
            if self._start_lanes:
                lane.start()
            self._ask(self._places[name])
        for number, task in run.tasks.items():
            self._places[name].pool.hold(Grant(run.need(number), task.trial.gpus))

    def lane(self, name: str) -> Lane:
        """The lane of a backend in use."""
        return self._places[name].lane

    def silence(self, name: str) -> str:
        """Why a backend does not answer, or ""."""
        return self._places[name].silence if name in self._places else ""

    def keep_silence(self, event: Silence) -> None:
        """Remember that a backend does not answer, or does so again."""
        self._places[event.backend].silence = event.reason

    def discovered(self, event: Discovered) -> None:
        """Learn what a place has. A place that queues by itself is not held to it."""
        place = self._places[event.backend]
        place.asking, place.known = False, event.inventory is not None
        place.asked_s = self._house.clocks.tick_s()
        place.pool.inventory = event.inventory if place.lane.backend.capabilities.gpu_slots else None

    def begin_round(self) -> None:
        """Before the trials are asked in order."""
        for place in self._places.values():
            place.pool.begin_round()

    def free(self, run: Run, job_id: str) -> None:
        """Give back what a job held."""
        self._places[run.record.spec.backend].pool.free(job_id)

    def start(self, run: Run, number: int, secrets: Mapping[str, str]) -> None:
        """Start a waiting trial if the place has what it asks for; else note what keeps it."""
        place = self._places[run.record.spec.backend]
        if not self._is_fresh(place, wants_gpus=run.record.spec.resources.gpus > 0):
            run.blocked.setdefault(number, "waits until its place has said what it has")
            return
        answer = place.pool.ask(run.need(number))
        if isinstance(answer, Grant):
            place.pool.hold(answer)
            run.move(number, TrialState.PREPARING, gpus=answer.gpus)
            run.tasks[number] = task = Task(run.trial_spec(number))
            self.send(run, task, secrets)
        elif answer.for_ever:
            run.fail_waiting(number, answer.sentence)
        else:
            run.blocked[number] = answer.sentence

    def send(self, run: Run, task: Task, secrets: Mapping[str, str]) -> None:
        """Hand a task to its place, or only watch it when the place has it already."""
        task.sent = True
        run.blocked.pop(task.trial.number, None)
        lane, trial = self.lane(run.record.spec.backend), task.trial
        store = self._house.store
        offset = self._house.insist(store.cursor, run.id, trial.number, trial.attempt, wire.METRICS)
        if task.ref is not None:
            lane.watch(trial, task.ref, offset)
        else:
            lane.submit(trial, {name: secrets[name] for name in trial.secrets if name in secrets}, offset)

    def _is_fresh(self, place: _Place, *, wants_gpus: bool) -> bool:
        old = wants_gpus and self._house.clocks.tick_s() - place.asked_s > _FRESH_S
        if not place.known or old:
            self._ask(place)
            return False
        return True

    def _ask(self, place: _Place) -> None:
        if not place.asking:
            place.asking = True
            place.lane.discover()
