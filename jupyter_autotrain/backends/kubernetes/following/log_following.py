"""Follows the log of one pod into what is collected of its trial.

A follow may end early and may tell things twice; each frame says where its bytes belong, so it is simply begun again.
What a rotated log does not hold any more is asked for in the pod itself, while that lives.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

from jupyter_autotrain.backends.kubernetes.access import exec_command
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.api_errors import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.access.exec_command import PodAddress
from jupyter_autotrain.backends.kubernetes.following.collected import CollectedNode, CollectedTrial, GapError
from jupyter_autotrain.backends.kubernetes.objects.object_types import PODS
from jupyter_autotrain.backends.kubernetes.objects.pod_view import PodLife
from jupyter_autotrain.backends.kubernetes_pod import frames, places
from jupyter_autotrain.errors import AutotrainError

_FIRST_PAUSE_S = 0.1
_MOST_PAUSE_S = 5.0
_log = logging.getLogger(__name__)
_BAD_REQUEST = 400
_NOT_FOUND = 404
_MOST_REFUSALS = 3
_MOST_LINES: Final = 20
_MOST_LINE = 500
_LEFT_OUT = b"\n[%d bytes are missing here: the log of the pod was rotated]\n"


class LogFollower:
    """Follows one pod.

    Args:
        api: The cluster.
        at: The pod.
        trial: Where what it says goes.
        life: Whether its container may still write, as far as is known.
        on_news: Called when something has come.
        job_id: The trial, where the log may be that of several.

    Attributes:
        printed: The last lines that are no frames, for messages.
        is_read_out: True when the log was read to its end after the container had ended.
        node: The node of the trial that the pod is, once it is known.
        fault: Why nothing more can be read.
    """

    def __init__(
        self, api: KubernetesApi, at: PodAddress, trial: CollectedTrial, life: Callable[[], PodLife],
        on_news: Callable[[], None], job_id: str = "",
    ) -> None:  # fmt: skip
        self.printed: list[str] = []
        self.is_read_out = False
        self.fault = ""
        self._api = api
        self._at = at
        self._trial = trial
        self.node: CollectedNode | None = trial.nodes[0] if len(trial.nodes) == 1 else None
        self._life = life
        self._on_news = on_news
        self._last_time = ""
        self._job_id = job_id
        self._is_of_another = bool(job_id)  # until its log says that it is of this one

    def is_done(self) -> bool:
        """Whether all that the pod says has come, as far as it can."""
        return self.is_read_out or (self.node is not None and self.node.has_ended())

    async def run(self) -> None:
        """Follow until everything has come, or nothing more can."""
        pause_s = _FIRST_PAUSE_S
        refusals = 0
        while not self.is_done():
            life = self._life()
            if life is PodLife.GONE:  # another pod may have its name by now
                self.is_read_out = True
                break
            before = self._last_time
            try:
                ended_well = await self._follow()
                self.fault = ""
            except ApiRefusedError as error:
                ended_well = False
                self.fault = error.found
                refusals += life is PodLife.ENDED and error.code == _BAD_REQUEST
                if error.code == _NOT_FOUND or refusals >= _MOST_REFUSALS:  # a container that never began has no log
                    self.is_read_out = True
                    break
            except (AutotrainError, OSError) as error:  # also of a home whose disk is full
                ended_well = False
                self.fault = error.found if isinstance(error, AutotrainError) else str(error)
            except Exception as error:  # noqa: BLE001 - whatever it is: the log is read again, and the fault shown meanwhile
                _log.exception("the log of %s cannot be read", self._at.pod)
                ended_well = False
                self.fault = f"the log of {self._at.pod} cannot be read: {error!r}"
            if ended_well and life is PodLife.ENDED:
                self.is_read_out = True
                break
            pause_s = _FIRST_PAUSE_S if self._last_time != before else min(pause_s * 2, _MOST_PAUSE_S)
            await asyncio.sleep(pause_s)
        self._on_news()

    async def _follow(self) -> bool:
        """Read until the server ends it; True when it did so in order."""
        query = {"follow": "true", "timestamps": "true", "container": self._at.container}
        if self._last_time:
            query["sinceTime"] = self._last_time
        path = f"{PODS.path(self._at.namespace, self._at.pod)}/log"
        async with self._api.opened("GET", path, query, read_s=None) as answer:
            await self._api.check(answer)
            rest = b""
            async for data in self._api.pieces(answer):
                *lines, rest = (rest + data).split(b"\n")
                await self._take(lines)
                if self.node is not None and self.node.has_ended():
                    return True
            return not rest

    async def _take(self, lines: list[bytes]) -> None:
        """Keep what lines of the log say."""
        pending: frames.Frame | None = None
        for line in lines:
            time, _, text = line.decode(errors="replace").partition(" ")
            self._last_time = time
            frame = frames.decode(text)
            if frame is None:
                self.printed = [*self.printed, text[:_MOST_LINE]][-_MOST_LINES:]
            elif pending is not None and pending.goes_on_in(frame):
                pending.data += frame.data
            else:
                await self._keep(pending)
                pending = frame
        await self._keep(pending)
        if lines:
            self._on_news()

    async def _keep(self, frame: frames.Frame | None) -> None:
        if frame is None:
            return
        with contextlib.suppress(ValueError):  # a path, or a number, that the trial has made up
            if frame.path == places.JOB:
                self._is_of_another = frame.data.decode() != self._job_id
                return
            if self._is_of_another:
                return
            if frame.path == places.NODE:
                self.node = self._trial.node(int(frame.data))
                return
            if self.node is None:
                return  # before a pod of several says which it is
            try:
                self.node.append(frame.path, frame.offset, frame.data)
            except GapError as gap:
                await self._fill(self.node, gap)
                self.node.append(frame.path, frame.offset, frame.data)

    async def _fill(self, node: CollectedNode, gap: GapError) -> None:
        """Ask the pod itself for what its log does not hold any more."""
        data = b""
        with contextlib.suppress(AutotrainError):
            data = await exec_command.read(self._api, self._at, gap.path, gap.begin, gap.end)
        node.append(gap.path, gap.begin, data)
        missing = gap.end - gap.begin - len(data)
        if missing:
            text = _LEFT_OUT % missing
            node.append(gap.path, gap.begin + len(data), text[:missing].ljust(missing, b"\n"))
