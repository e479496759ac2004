"""The debugger of ranks that stopped at `breakpoint()` or an exception: commands are files, answers a stream."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.trial import stacks
from jupyter_autotrain.client.stacks import RankStreams
from jupyter_autotrain.core.backend import Backend, JobRef
from jupyter_autotrain.errors import AutotrainError

_LOOK_S: Final = 0.05
_MOST_LOOK_S: Final = 0.5
_FIRST_S: Final = 10.0


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
