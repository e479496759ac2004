"""The state of a backend: the connection to its cluster, what runs there, what was sent. All of it can be made anew."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.credentials import Access
from jupyter_autotrain.backends.kubernetes.following.deleting import BatchWindow
from jupyter_autotrain.backends.kubernetes.following.job_tracking import JobTracker
from jupyter_autotrain.backends.kubernetes.objects import naming
from jupyter_autotrain.backends.kubernetes.objects.fields import text
from jupyter_autotrain.backends.kubernetes.objects.workload import SECRETS
from jupyter_autotrain.backends.kubernetes.storage import shipping, trial_needs
from jupyter_autotrain.backends.kubernetes.storage.code_objects import CodeObjects
from jupyter_autotrain.backends.kubernetes.storage.shipping import Shipping, Storage
from jupyter_autotrain.backends.kubernetes.storage.volume_storage import MountedStorage, VolumeStorage
from jupyter_autotrain.backends.kubernetes.workloads import pod_template, volumes
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import home_identity
from jupyter_autotrain.errors import AutotrainError

_log = logging.getLogger(__name__)
_OWN_WINDOW_S = 1.0  # how long a single new owner of code waits for others
_MOST_OWN_WINDOW_S = 10.0
_SETTLE_S = 5.0  # how long the end waits for a cluster

LoadAccess = Callable[[str, str], Access]


class Session:
    """A cluster, one namespace of it, one home.

    Args:
        options: Of the profile.
        context: The home.
        on_news: Takes the id of a job that something is new of.
        load: Loads the access to a cluster by a kubeconfig and a context.
    """

    def __init__(
        self, options: JsonObject, context: BackendContext, on_news: Callable[[str], None], load: LoadAccess
    ) -> None:
        kubeconfig = str(options.get("kubeconfig") or "")
        cluster = str(options.get("context") or "")
        self.api = KubernetesApi(lambda: load(kubeconfig, cluster))
        self.home = home_identity(context.home)
        self._context = context
        self._given_namespace = str(options.get("namespace") or "")
        self._on_news = on_news
        self._lock = threading.Lock()
        self._tracker: JobTracker | None = None
        self._code: CodeObjects | None = None
        self._owning = False
        self._own_window = BatchWindow(_OWN_WINDOW_S, _MOST_OWN_WINDOW_S)
        self._options = options
        self._ways: Shipping | None = None

    @property
    def ways(self) -> Shipping:
        """Return how archives get to pods; asks no cluster before something is sent."""
        with self._lock:
            if self._ways is None:
                self._ways = Shipping(self._storage())
            return self._ways

    def _storage(self) -> Storage | None:
        """Return where archives lie that are too big for ConfigMaps."""
        if place := shipping.remote_place(self._options):
            from jupyter_autotrain.backends.kubernetes.storage.remote_storage import RemoteStorage  # noqa: PLC0415 - only profiles with one pay

            return RemoteStorage(place, self._credentials)
        if not volumes.has_volume(self._options):
            return None
        if local_path := text(self._options, "storage", "local_path"):
            return MountedStorage(local_path)
        return VolumeStorage(self.api, self._options, self._loader_metadata)

    def _credentials(self) -> dict[str, str]:
        """Return those of the storage: they stand in a Secret of the cluster, and are not kept."""
        name = shipping.remote_secret(self._options)
        return trial_needs.secret_values(self.api.get(SECRETS, self.namespace, name)) if name else {}

    def _loader_metadata(self) -> JsonObject:
        return {"namespace": self.namespace, **self._shared_metadata()}

    def _shared_metadata(self) -> JsonObject:
        """Return labels and annotations of what is no single trial's."""
        labels = {naming.MANAGED_BY: naming.MANAGER, naming.LABEL_HOME: self.home}
        return pod_template.metadata(self._options, labels, {})

    @property
    def namespace(self) -> str:
        """The namespace of the options, else of the context.

        Raises:
            BackendError: There is no access to the cluster.
        """
        return self._given_namespace or self.api.namespace

    @property
    def tracker(self) -> JobTracker:
        """Return what runs there."""
        namespace = self.namespace
        with self._lock:
            if self._tracker is None:
                self._tracker = JobTracker(self.api, namespace, self.home, self._on_news, self._own_code)
            return self._tracker

    @property
    def code(self) -> CodeObjects:
        """Return what was sent there."""
        namespace = self.namespace
        with self._lock:
            if self._code is None:
                self._code = CodeObjects(self.api, namespace, self.home, self._shared_metadata())
            return self._code

    def own_soon(self, names: list[str], owner: JsonObject) -> None:
        """Have a trial's object own what was sent for it, together with others."""
        self.code.own(names, owner)
        with self._lock:
            if self._owning:
                return
            self._owning = True
            window_s = self._own_window.open()
        self.api.loop.start(self._own_later(window_s))

    async def _own_later(self, window_s: float) -> None:
        await asyncio.sleep(window_s)
        with self._lock:
            self._owning = False
        await self._own_code()

    async def _own_code(self) -> None:
        if self.code.has_new_owners:
            await asyncio.get_running_loop().run_in_executor(None, self._flush_now)

    def _flush_now(self) -> None:
        try:
            self.code.flush()
        except AutotrainError as error:  # they stay noted, and go with the next ones
            _log.warning("code in the cluster gets no owners yet: %s", error.found)

    def close(self) -> None:
        """Do what was put off to be done with more, and give up all connections."""
        if self._tracker is not None:
            with contextlib.suppress(AutotrainError):  # `clean` finds what stays
                self.api.loop.call(self._settle(self._tracker), _SETTLE_S)
        with self._lock:
            self._tracker = self._code = None
        self.api.close()

    async def _settle(self, tracker: JobTracker) -> None:
        """Give sent code its owners, and delete the objects of trials that have ended."""
        await self._own_code()
        tracker.deleter.delete_at_once()
        await tracker.deleter.until_deleted()
