"""The stacks of all ranks of a running trial, taken now through its backend: no port, at every place the same way."""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Final

from jupyter_autotrain import backends
from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.agent.trial import stacks
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.core.backend import Backend, BackendContext, Cursor, JobRef
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.errors import AutotrainError

_LOOK_S: Final = 0.1
_TIMEOUT_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class RankStacks:
    """Where a rank stands.

    Attributes:
        rank: Its number.
        text: The stacks of its threads as faulthandler writes them, its main thread last; "" where it did not answer.
        place: The place of its main thread in a few words.
        fault: Why it did not answer.
    """

    rank: int
    text: str
    place: str
    fault: str = ""

    @property
    def main_thread(self) -> tuple[stacks.Frame, ...]:
        """The frames of its main thread, innermost first."""
        return tuple(stacks.main_thread(self.text))


@dataclass(slots=True)
class RankStreams:
    """Reads a stream of each rank by cursor.

    Attributes:
        backend: The backend.
        ref: The job.
        stream: The name of the stream.
        texts: What has come of each rank so far.
    """

    backend: Backend
    ref: JobRef
    stream: str
    texts: dict[int, str] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)

    def read(self, ranks: Sequence[int]) -> None:
        """Take what has come."""
        names = [(wire.stream_of_rank(self.stream, rank), self.offsets.get(rank, 0)) for rank in ranks]
        cursors = [Cursor(self.ref, name, offset) for name, offset in names]
        for rank, chunk in zip(ranks, self.backend.read(cursors), strict=True):
            self.offsets[rank] = self.offsets.get(rank, 0) + len(chunk.data)
            self.texts[rank] = self.texts.get(rank, "") + chunk.data.decode(errors="replace")


def take_stacks(experiment: Experiment, number: int | None = None, timeout_s: float = _TIMEOUT_S) -> list[RankStacks]:
    """Return where the ranks of a trial stand now, by rank. The trial goes on.

    Args:
        experiment: Its experiment.
        number: The trial; None: the newest that runs.
        timeout_s: The longest wait for the answers.

    Raises:
        AutotrainError: No such trial runs, or its place cannot be asked.
    """
    trial = running_trial(experiment, number)
    with channel_to(experiment, trial) as (backend, ref):
        return ask_ranks(backend, ref, range(experiment.record.spec.resources.ranks), timeout_s)


@contextmanager
def channel_to(experiment: Experiment, trial: TrialRecord) -> Iterator[tuple[Backend, JobRef]]:
    """Yield the backend of a running trial, and the trial's name there."""
    profile = experiment.record.spec.choice(trial.placement.backend).profile
    with closing(backends.create(profile, BackendContext(experiment.home))) as backend:
        assert trial.ref is not None
        yield backend, trial.ref


def running_trial(experiment: Experiment, number: int | None) -> TrialRecord:
    """Return the trial of a number, or the newest that runs.

    Raises:
        AutotrainError: It does not run.
    """
    running = [trial for trial in experiment.trials if trial.state is TrialState.RUNNING and trial.ref is not None]
    found = [trial for trial in running if number in {None, trial.number}]
    if not found:
        which = "No trial" if number is None else f"Trial {number}"
        others = ", ".join(str(trial.number) for trial in running)
        raise AutotrainError(
            f"{which} of {experiment.name} runs now.",
            f"These run: {others}." if others else "Only a trial that runs can be looked into.",
            f"Ask why: %autotrain why {experiment.name}",
        )
    return found[-1]


def ask_ranks(backend: Backend, ref: JobRef, ranks: range, timeout_s: float) -> list[RankStacks]:
    """Have the supervisors of a job take the stacks of these ranks, and wait for all of them, or for so long."""
    tag = secrets.token_hex(8)
    reader = RankStreams(backend, ref, wire.STACKS)
    backend.put(ref, wire.STACKS_FILE, tag.encode())
    deadline_s = time.monotonic() + timeout_s
    answers: Mapping[int, tuple[str, str, str]] = {}
    while len(answers) < len(ranks) and time.monotonic() < deadline_s:
        time.sleep(_LOOK_S)
        reader.read(ranks)
        answers = _answered(reader, tag)
    found = []
    for rank in ranks:
        text, place, fault = answers.get(rank, ("", "", f"Its place did not answer within {timeout_s:g} s."))
        found.append(RankStacks(rank, text, place, fault))
    return found


def _answered(reader: RankStreams, tag: str) -> dict[int, tuple[str, str, str]]:
    found = {}
    for rank, text in reader.texts.items():
        answer = stacks.answer_to(text, tag)
        if answer is not None:
            found[rank] = answer
    return found
