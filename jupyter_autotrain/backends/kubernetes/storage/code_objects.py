"""Code, and what else is small, as ConfigMaps: compressed, immutable, named by content, owned by the jobs that use it.

A ConfigMap is made before the first job that mounts it, without owners. Afterwards each job becomes one of its owners,
many jobs by one request; when the last of them is deleted, the cluster's garbage collector deletes it. One that is gone
by then is made again: pods wait for it meanwhile.
"""

from __future__ import annotations

import base64
import hashlib
import logging
import threading
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.connection import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.objects.fields import items
from jupyter_autotrain.backends.kubernetes.objects.workload import CONFIG_MAPS
from jupyter_autotrain.errors import BackendError

LIMIT_BYTES: Final = 1 << 20  # of all that a ConfigMap holds, before it is encoded
_NAME_CHARACTERS = 24
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class CodeFile:
    """A file for pods.

    Attributes:
        name: In the folder where pods find it.
        content: At most `LIMIT_BYTES`.
    """

    name: str
    content: bytes

    @property
    def fits(self) -> bool:
        """Return whether a ConfigMap can hold it."""
        return len(self.content) <= LIMIT_BYTES

    def object_name(self, home: str) -> str:
        """Return the name of its ConfigMap: the same content has the same one, and each home its own.

        Args:
            home: The identity of the home.
        """
        return f"autotrain-{home[:8]}-{self._digest[:_NAME_CHARACTERS]}"

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256(self.name.encode() + b"\0" + self.content).hexdigest()

    def manifest(self, home: str, namespace: str, shared: JsonObject, owners: Sequence[JsonObject] = ()) -> JsonObject:
        """Return its ConfigMap.

        Args:
            home: The identity of the home.
            namespace: Where it is made.
            shared: Labels and annotations, as in the metadata of a manifest.
            owners: Owner references.
        """
        metadata: dict[str, JsonValue] = {**shared, "name": self.object_name(home), "namespace": namespace}
        if owners:
            metadata["ownerReferences"] = list(owners)
        data: JsonObject = {self.name: base64.b64encode(self.content).decode()}
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data, "immutable": True}


def volume(name: str, config_maps: Mapping[str, str]) -> JsonObject:
    """Return one volume that shows several ConfigMaps of one file each."""
    sources: list[JsonValue] = []
    for file, config_map in config_maps.items():
        sources.append({"configMap": {"name": config_map, "items": [{"key": file, "path": file}]}})
    return {"name": name, "projected": {"sources": sources}}


def owner_reference(owner: JsonObject) -> JsonObject:
    """Return how an object of the cluster is named as an owner of others."""
    metadata = owner["metadata"]
    assert isinstance(metadata, dict)
    return {
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": metadata["name"], "uid": metadata["uid"]
    }  # fmt: skip


class CodeObjects:
    """The ConfigMaps of a home in a namespace; safe for several threads.

    What it remembers spares requests; a fresh one knows nothing and does the same.

    Args:
        api: The cluster.
        namespace: Where they are made.
        home: The identity of the home.
        shared: Labels and annotations of all of them, as in the metadata of a manifest.
    """

    def __init__(self, api: KubernetesApi, namespace: str, home: str, shared: JsonObject) -> None:
        self._api = api
        self._namespace = namespace
        self._home = home
        self._shared = shared
        self._lock = threading.Lock()
        self._files: dict[str, CodeFile] = {}
        self._made: set[str] = set()
        self._users: Counter[str] = Counter()  # submits that are under way
        self._new_owners: dict[str, list[JsonObject]] = {}

    def ensure(self, file: CodeFile) -> str:
        """Have a file in the cluster; gives the name of its ConfigMap.

        Raises:
            BackendError: The cluster refuses it.
        """
        name = file.object_name(self._home)
        with self._lock:  # of jobs that begin together one makes it
            if name not in self._made:
                manifest = file.manifest(self._home, self._namespace, self._shared)
                self._api.create_unless_there(CONFIG_MAPS, self._namespace, manifest)
                self._files[name] = file
                self._made.add(name)
        return name

    @contextmanager
    def sent(self, files: Collection[CodeFile]) -> Iterator[None]:
        """Have files in the cluster while a job is made that uses them; those that nothing uses go with a refusal.

        Raises:
            BackendError: The cluster refuses one of them, or the job.
        """
        names = [file.object_name(self._home) for file in files]
        with self._lock:
            self._users.update(names)
        try:
            for file in files:
                self.ensure(file)
            yield
        except ApiRefusedError:
            self._remove_unused(names)
            raise
        finally:
            with self._lock:
                self._users.subtract(names)

    def _remove_unused(self, names: Sequence[str]) -> None:
        """Delete the ConfigMaps of a submit that was refused, but for those that another one or a job uses."""
        with self._lock:
            for name in names:
                if self._users[name] > 1 or self._new_owners.get(name):
                    continue
                try:
                    found = self._api.get(CONFIG_MAPS, self._namespace, name)
                    if not items(found, "metadata", "ownerReferences"):
                        self._made.discard(name)
                        self._api.delete_as_it_was(CONFIG_MAPS, found)
                except BackendError as error:  # `clean` finds it
                    _log.warning("%s stays in the cluster: %s", name, error.found)

    def own(self, names: Sequence[str], owner: JsonObject) -> None:
        """Note that a job uses ConfigMaps; `flush` tells the cluster.

        Args:
            names: The ConfigMaps.
            owner: The job as the cluster gave it.
        """
        with self._lock:
            for name in names:
                self._new_owners.setdefault(name, []).append(owner_reference(owner))

    @property
    def has_new_owners(self) -> bool:
        """Return whether `flush` has something to do."""
        return bool(self._new_owners)

    def flush(self) -> None:
        """Add the owners that were noted: one request for each ConfigMap, however many jobs use it.

        Raises:
            BackendError: The cluster refuses; they stay noted.
        """
        with self._lock:
            noted = self._new_owners
            self._new_owners = {}
        while noted:
            name = next(iter(noted))
            try:
                self._add_owners(name, noted[name])
            except BaseException:
                self._put_back(noted)
                raise
            del noted[name]

    def _add_owners(self, name: str, owners: list[JsonObject]) -> None:
        patch: JsonObject = {"metadata": {"ownerReferences": list(owners)}}
        if self._api.patch_if_there(CONFIG_MAPS, self._namespace, name, patch):
            return
        file = self._files.get(name)
        if file is not None:  # its last owner was deleted in between
            manifest = file.manifest(self._home, self._namespace, self._shared, owners)
            self._api.create_unless_there(CONFIG_MAPS, self._namespace, manifest)

    def _put_back(self, noted: Mapping[str, list[JsonObject]]) -> None:
        with self._lock:
            for name, owners in noted.items():
                self._new_owners[name] = owners + self._new_owners.get(name, [])
