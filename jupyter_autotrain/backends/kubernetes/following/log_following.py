"""Follows the log of one pod into what is collected of its trial.

A follow may end early and may tell things twice; each frame says where its bytes belong, so it is simply begun again.
What a rotated log does not hold any more is asked for in the pod itself, while that lives.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from jupyter_autotrain.backends.kubernetes.access import exec_command
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.connection import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.access.exec_command import PodAddress
from jupyter_autotrain.backends.kubernetes.objects.pod_parts import PodLife
from jupyter_autotrain.backends.kubernetes.objects.workload import LINGER_S, PODS
from jupyter_autotrain.backends.log_channel import log_reading
from jupyter_autotrain.backends.log_channel.collected import CollectedNode, CollectedTrial, GapError
from jupyter_autotrain.backends.log_channel.log_reading import LogReader
from jupyter_autotrain.errors import AutotrainError, BackendUnavailableError

if TYPE_CHECKING:
    import aiohttp

_FIRST_PAUSE_S = 0.1
_MOST_PAUSE_S = 5.0
_log = logging.getLogger(__name__)
_BAD_REQUEST = 400
_NOT_FOUND = 404
_MOST_REFUSALS = 3
_QUIET_READS = 2
_SILENT_S = 30.0


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
        is_read_out: True when the log was read to its end after the container had ended.
        fault: Why it cannot be read at the moment.
    """

    def __init__(
        self, api: KubernetesApi, at: PodAddress, trial: CollectedTrial, life: Callable[[], PodLife],
        on_news: Callable[[], None], job_id: str = "",
    ) -> None:  # fmt: skip
        self._reader = LogReader(trial, job_id)
        self.is_read_out = False
        self.fault = ""
        self._api = api
        self._at = at
        self._life = life
        self._on_news = on_news
        self._last_time = ""
        self._reading: asyncio.Timeout | None = None
        self._heard_s = 0.0
        self._refusals = 0
        self._quiet = 0  # how often it was read in order without anything new, since the container had ended
        self._unread_since_s = 0.0

    @property
    def printed(self) -> list[str]:
        """The last lines that are no frames, for messages."""
        return self._reader.printed

    @property
    def node(self) -> CollectedNode | None:
        """The node of the trial that the pod is, once it is known."""
        return self._reader.node

    def is_done(self) -> bool:
        """Return whether all that the pod says has come, as far as it can."""
        return self.is_read_out or (self.node is not None and self.node.has_ended())

    async def run(self) -> None:
        """Follow until everything has come, or nothing more can."""
        pause_s = _FIRST_PAUSE_S
        while not self.is_done():
            life = self._life()
            if life is PodLife.GONE:  # another pod may have its name by now
                self.is_read_out = True
                break
            before = self._last_time
            ended_well = await self._try(has_ended=life is PodLife.ENDED)
            self._note_quiet(is_quiet=ended_well and life is PodLife.ENDED and self._last_time == before)
            if self.is_read_out:
                break
            pause_s = _FIRST_PAUSE_S if self._last_time != before else min(pause_s * 2, _MOST_PAUSE_S)
            await asyncio.sleep(pause_s)
        self._on_news()

    def _note_quiet(self, *, is_quiet: bool) -> None:
        """Take the log of an ended container as read out when it was read again, and nothing more has come.

        A server ends an answer in order also where its own connection to the node was cut.
        """
        self._quiet = self._quiet + 1 if is_quiet else 0
        self.is_read_out = self.is_read_out or self._quiet >= _QUIET_READS

    async def _try(self, *, has_ended: bool) -> bool:
        """Follow once; True when the server ended it in order."""
        try:
            return await self._follow()
        except ApiRefusedError as error:
            self.fault = error.found
            self._refusals += has_ended and error.code == _BAD_REQUEST
            if error.code == _NOT_FOUND or self._refusals >= _MOST_REFUSALS:  # one that never began has no log
                self.is_read_out = True
        except AutotrainError as error:
            self.fault = error.found
            if has_ended and isinstance(error.__cause__, ApiRefusedError):  # the server answers, but not the node
                self._give_up_in_time()
        except OSError as error:  # of a home whose disk is full
            self.fault = str(error)
        except Exception as error:  # noqa: BLE001 - whatever it is: the log is read again, and the fault shown meanwhile
            _log.exception("the log of %s cannot be read", self._at.pod)
            self.fault = f"the log of {self._at.pod} cannot be read: {error!r}"
        return False

    def _give_up_in_time(self) -> None:
        """Give up what a container has left after the time that a pod would wait, as where its node is gone."""
        now_s = time.monotonic()
        self._unread_since_s = self._unread_since_s or now_s
        self.is_read_out = now_s - self._unread_since_s > LINGER_S

    async def _follow(self) -> bool:
        """Read until the server ends it; True when it did so in order."""
        query = {"follow": "true", "timestamps": "true", "container": self._at.container}
        if self._last_time:
            query["sinceTime"] = self._last_time
        path = f"{PODS.path(self._at.namespace, self._at.pod)}/log"
        async with self._api.opened("GET", path, query, read_s=None) as answer:
            await self._api.check(answer)
            self.fault = ""
            self._unread_since_s = 0.0
            self._heard_s = time.monotonic()
            try:
                async with asyncio.timeout(None) as self._reading:
                    return await self._read(answer)
            except TimeoutError:
                return False
            finally:
                self._reading = None

    async def _read(self, answer: aiohttp.ClientResponse) -> bool:
        """Take an answer to its end; True when that came in order."""
        rest = b""
        pieces = self._api.pieces(answer)
        while True:
            try:
                data = await anext(pieces)
            except StopAsyncIteration:
                return not rest
            except BackendUnavailableError:  # it was cut off
                return False
            self._heard_s = time.monotonic()
            *lines, rest = (rest + data).split(b"\n")
            await self._take(lines)
            if self.node is not None and self.node.has_ended():
                return True

    def end_if_silent(self) -> None:
        """Read again where nothing has come for a while from a container that has ended. In the loop.

        Over a connection that a box on its way has forgotten, the end of the answer never comes.
        """
        if self._life() is PodLife.ALIVE:
            self._heard_s = time.monotonic()
        elif self._reading is not None and time.monotonic() - self._heard_s > _SILENT_S:
            self._reading.reschedule(0.0)
            self._reading = None

    async def _take(self, lines: list[bytes]) -> None:
        """Keep what lines of the log say; they come again where that fails."""
        written = self._last_time
        texts = []
        for line in lines:
            written, _, text = line.decode(errors="replace").partition(" ")
            texts.append(text)
        for node, frame in self._reader.read(texts):
            with contextlib.suppress(ValueError):  # a path that the trial has made up
                try:
                    node.append(frame.path, frame.offset, frame.data)
                except GapError as gap:
                    await self._fill(node, gap)
                    node.append(frame.path, frame.offset, frame.data)
        self._last_time = written
        if lines:
            self._on_news()

    async def _fill(self, node: CollectedNode, gap: GapError) -> None:
        """Ask the pod itself for what its log does not hold any more."""
        data = b""
        with contextlib.suppress(AutotrainError):
            data = await exec_command.read(self._api, self._at, gap.path, gap.begin, gap.end)
        node.append(gap.path, gap.begin, data)
        log_reading.mark_missing(node, gap, len(data))
