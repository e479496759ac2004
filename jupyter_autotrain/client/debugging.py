"""Looking into a running trial through its backend: the stacks of its ranks, and the debugger of those that stopped.

No port is needed: a question is a file of the trial, its answer a stream, at every place the same way. A rank stops at
`breakpoint()` or an exception.
"""

from __future__ import annotations

import json
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

_ANSWER_S: Final = 0.1
_TIMEOUT_S: Final = 60.0

_LOOK_S: Final = 0.05
_MOST_LOOK_S: Final = 0.5
_FIRST_S: Final = 10.0


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
        time.sleep(_ANSWER_S)
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


@dataclass(frozen=True, slots=True)
class RankAnswer:
    """The answer of a rank since it was asked.

    Attributes:
        text: What pdb has printed.
        place: Where the rank stands, or has stood.
        is_stopped: Whether it waits for a command.
    """

    text: str
    place: str
    is_stopped: bool


class RankDebugging:
    """The debuggers of some ranks of a job.

    Args:
        backend: The job's backend.
        ref: The job.
        ranks: Which ranks; None: all that stand.
        all_ranks: How many it has.

    Raises:
        AutotrainError: None of them stands, or one that is named does not.
    """

    def __init__(self, backend: Backend, ref: JobRef, ranks: Sequence[int] | None, all_ranks: int) -> None:
        self._backend = backend
        self._ref = ref
        self._streams = RankStreams(backend, ref, wire.DEBUG)
        self._seen: dict[int, int] = {}  # characters that were told
        self.ranks: list[int] = []
        self.answers = self._stopped(ranks, range(all_ranks) if ranks is None else ranks)
        self.ranks = sorted(self.answers)

    def _stopped(self, named: Sequence[int] | None, ranks: Sequence[int]) -> Mapping[int, RankAnswer]:
        deadline_s = time.monotonic() + _FIRST_S
        while True:
            self._streams.read(ranks)
            found = {rank: answer for rank in ranks if (answer := self._answer(rank)) and answer.is_stopped}
            missing = sorted(set(named or ()) - set(found))
            if found and not missing:
                return found
            if time.monotonic() > deadline_s:
                break
            time.sleep(_MOST_LOOK_S)
        if missing:
            text = f"No debugger stands open in {stacks.named(missing)}."
        else:
            text = "No debugger stands open in any rank."
        raise AutotrainError(
            text,
            "A rank that has called breakpoint(), or raised an exception under `post_mortem: true`.",
            "See where the ranks are: %autotrain stacks",
        )

    def _answer(self, rank: int) -> RankAnswer | None:
        """Return what a rank has said and was not told yet, once it waits or has left; None before."""
        text = self._streams.texts.get(rank, "")
        whole = text[: text.rfind("\n") + 1]
        printed = ""
        found: RankAnswer | None = None
        for line in whole[self._seen.get(rank, 0) :].splitlines():
            frame = json.loads(line)
            if "out" in frame:
                printed += str(frame["out"])
                continue
            place = str(frame.get("prompt", frame.get("left")))
            found = RankAnswer(printed, place, "prompt" in frame)
            printed = ""
        return found

    def send(self, command: str) -> Mapping[int, RankAnswer]:
        """Have each of the ranks do a command of pdb, and wait until each waits again or has gone on.

        A command may take long; an interrupt ends the waiting only.
        """
        waiting = set(self.ranks)
        for rank in self.ranks:
            text = self._streams.texts[rank]
            self._seen[rank] = text.rfind("\n") + 1
            name = f"{wire.CONTROL}/debug-{rank}-{time.time_ns():020d}"
            self._backend.put(self._ref, name, command.encode())
        answers: dict[int, RankAnswer] = {}
        pause_s = _LOOK_S
        while waiting:
            time.sleep(pause_s)
            pause_s = min(pause_s * 1.2, _MOST_LOOK_S)
            self._streams.read(sorted(waiting))
            for rank in sorted(waiting):
                if answer := self._answer(rank):
                    answers[rank] = answer
                    waiting.discard(rank)
            if waiting and self._has_ended():
                answers |= dict.fromkeys(waiting, RankAnswer("The trial has ended.\n", "", is_stopped=False))
                break
        self.ranks = [rank for rank in self.ranks if answers[rank].is_stopped]
        self.answers = answers
        return answers

    def _has_ended(self) -> bool:
        [status] = self._backend.poll([self._ref])
        return not status.doubt and status.state.is_final
