"""Trials on several nodes that start on all of them or on none, in clusters without a queue that sees to it.

Such a trial is made suspended. One at a time is resumed; while some of its pods find no node, those that have one hold
it for nothing: after a while it is suspended again, so that what waits for the same nodes can have them. It gives up
when that went on for as long as the profile allows and no trial of this home runs by whose end it could fit.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from jupyter_autotrain.backends.kubernetes.objects.fields import text
from jupyter_autotrain.backends.kubernetes.options.option_defaults import START_TIMEOUT_S
from jupyter_autotrain.backends.kubernetes.reasons import queue_reasons, scheduling_reasons
from jupyter_autotrain.core.json import JsonObject

_HOLD_S = 30.0  # how long pods may hold nodes while others of their trial find none
_TRIES = 10  # at least, before a trial gives up


class Action(StrEnum):
    """What is to be done with a trial's object."""

    RESUME = "resume"
    SUSPEND = "suspend"
    GIVE_UP = "give up"


@dataclass(frozen=True, slots=True)
class Gang:
    """A trial on several nodes.

    Attributes:
        name: Of its object.
        made: When it was made, in a form that sorts.
        nodes: With how many pods it starts.
        placed: How many of them have a node.
        is_suspended: Whether it has no pods, and is not to have any.
        stuck: What the scheduler says about a pod that finds no node; "" while there is none.
        is_leaving: Whether pods of an earlier try are still being ended, so that they hold nodes.
        timeout_s: How long it may try in all while nothing else of its home runs.
    """

    name: str
    made: str
    nodes: int
    placed: int
    is_suspended: bool
    stuck: str = ""
    is_leaving: bool = False
    timeout_s: float = START_TIMEOUT_S

    @property
    def hold_s(self) -> float:
        """How long its pods may hold nodes while others of it find none."""
        return min(_HOLD_S, self.timeout_s / _TRIES)

    @property
    def is_starting(self) -> bool:
        """Whether it may have pods and has not all of them on nodes."""
        return not self.is_suspended and self.placed < self.nodes


@dataclass(frozen=True, slots=True)
class Step:
    """What is to be done, and for what reason."""

    name: str
    action: Action
    reason: str = ""


@dataclass(frozen=True, slots=True)
class _Times:
    """Of one gang.

    Attributes:
        since_s: When this try began; None between tries.
        looked_s: When it was looked at last.
        tried_s: For how long it found too few nodes, in all tries, while nothing else of its home ran.
        not_before_s: When the next try may begin.
    """

    since_s: float | None = None
    looked_s: float = 0.0
    tried_s: float = 0.0
    not_before_s: float = 0.0


class GangGate:
    """Decides which trials on several nodes may start. What it forgets with a restart only costs time.

    Args:
        clock: Gives seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._times: dict[str, _Times] = {}
        self._running = 0

    def decide(self, gangs: Sequence[Gang], others_running: int = 0) -> list[Step]:
        """What is to be done now. O(n log n).

        Args:
            gangs: All of this home that have not ended.
            others_running: How many other trials of this home have a node.
        """
        now_s = self._clock()
        known = {gang.name for gang in gangs}
        self._times = {name: times for name, times in self._times.items() if name in known}
        in_order = sorted(gangs, key=lambda gang: (gang.made, gang.name))
        holding = [gang for gang in gangs if gang.is_leaving or not (gang.is_suspended or gang.is_starting)]
        running = others_running + len(holding)
        if running < self._running:  # nodes have come free
            self._times = {name: replace(times, not_before_s=now_s) for name, times in self._times.items()}
        self._running = running
        starting = [gang for gang in in_order if gang.is_starting]
        steps = [self._judge(gang, now_s, running, gang is not starting[0]) for gang in starting]
        found = [step for step in steps if step is not None]
        if len(found) == len(starting):
            found += self._next(in_order, now_s)
        return found

    def _judge(self, gang: Gang, now_s: float, running: int, is_second: bool) -> Step | None:
        """Whether a trial that is starting has to end that."""
        times = self._times.get(gang.name, _Times())
        since_s = now_s if times.since_s is None else times.since_s
        before_s = now_s if times.since_s is None else times.looked_s
        tried_s = times.tried_s + (now_s - before_s if gang.stuck and not running else 0.0)
        self._times[gang.name] = _Times(since_s, now_s, tried_s, times.not_before_s)
        if not gang.stuck:
            return None
        if tried_s > gang.timeout_s:
            return Step(gang.name, Action.GIVE_UP, self._message(gang))
        if gang.placed and (is_second or now_s - since_s > gang.hold_s * _spread(gang.name, now_s)):
            pause_s = gang.hold_s * _spread(gang.name[::-1], now_s)
            self._times[gang.name] = _Times(None, now_s, tried_s, now_s + pause_s)
            return Step(gang.name, Action.SUSPEND, gang.stuck)
        return None

    def _next(self, in_order: Sequence[Gang], now_s: float) -> list[Step]:
        """The oldest that waits and may try now."""
        for gang in in_order:
            if gang.is_suspended and not gang.is_leaving and self._times.get(gang.name, _Times()).not_before_s <= now_s:
                return [Step(gang.name, Action.RESUME)]
        return []

    def _message(self, gang: Gang) -> str:
        return (
            f"The cluster did not give it {gang.nodes} nodes at the same time within {gang.timeout_s:g} s: "
            f"{gang.placed} of its pods had one, another {gang.stuck}. All of them are free again. "
            "Ask for fewer (`resources: {nodes: N}`), raise `start_timeout`, or name a `queue`."
        )


def _spread(name: str, now_s: float) -> float:
    """Between 1 and 2, and different for different trials: two of them do not give way to each other for ever."""
    return 1.0 + zlib.crc32(f"{name}{now_s // 60}".encode()) / 2**32


def gang_of(found: JsonObject, pods: Sequence[JsonObject], timeout_s: float = START_TIMEOUT_S) -> Gang | None:
    """The gang of an object of the cluster; None where it is none of those that are made suspended.

    Args:
        found: The object.
        pods: Its pods.
        timeout_s: How long it may try.
    """
    nodes = text(found, "metadata", "annotations", queue_reasons.GANG)
    if not nodes.isdigit():
        return None
    living = [pod for pod in pods if not text(pod, "metadata", "deletionTimestamp")]
    placed = sum(1 for pod in living if text(pod, "spec", "nodeName"))
    stuck = [told for told in map(scheduling_reasons.of_pod, living) if told]
    return Gang(
        text(found, "metadata", "name"), text(found, "metadata", "creationTimestamp"), int(nodes), placed,
        queue_reasons.is_suspended(found), stuck[0] if stuck else "", len(living) < len(pods), timeout_s,
    )  # fmt: skip
