"""What a manager looks after again and again while it follows trials of one namespace."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.following.cluster_view import ClusterView
from jupyter_autotrain.backends.kubernetes.following.tracked_job import TrackedJob
from jupyter_autotrain.errors import AutotrainError

_log = logging.getLogger(__name__)


class Keeper(ABC):
    """Looks at trials every now and then, once it has begun.

    Args:
        api: The cluster.
        view: What there is of them in the cluster.
        jobs: Gives those that are followed.
        on_change: Called with one that it gives up.
    """

    subject = "trials"
    look_again_s = 1.0

    def __init__(
        self, api: KubernetesApi, view: ClusterView, jobs: Callable[[], Sequence[TrackedJob]],
        on_change: Callable[[TrackedJob], None],
    ) -> None:  # fmt: skip
        self._api = api
        self._view = view
        self._jobs = jobs
        self._on_change = on_change
        self._is_running = False

    def begin(self) -> None:
        """Look after them from now on."""
        if not self._is_running:
            self._is_running = True
            self._api.loop.start(self._run())

    async def _run(self) -> None:
        while True:
            try:
                await self._look()
            except AutotrainError as error:  # the next look tries again
                _log.warning("%s cannot be looked after: %s", self.subject, error.found)
            except Exception:  # noqa: BLE001 - one of them that cannot be dealt with must not end it for the others
                _log.exception("%s cannot be looked after", self.subject)
            await asyncio.sleep(self.look_again_s)

    @abstractmethod
    async def _look(self) -> None:
        """Do what is to be done now."""
