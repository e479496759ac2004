"""Archives on the volume of the profile's `storage:`; pods find them unpacked.

A pod that mounts the volume receives what is sent over `exec`, and removes what is there. The pod lives as long as
one archive is sent; one that a killed manager left ends by its deadline, and `clean` finds it by its labels.
"""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, cast

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.agent.objects import archives, storage_use
from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.backends.kubernetes.access import exec_command
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.exec_command import ExecChannel, PodAddress
from jupyter_autotrain.backends.kubernetes.objects import pod_parts, trial_reasons
from jupyter_autotrain.backends.kubernetes.objects.pod_parts import security_contexts, unexpanded
from jupyter_autotrain.backends.kubernetes.objects.workload import (
    CONTAINER,
    IMAGE,
    PODS,
    PYTHON,
    START_TIMEOUT_S,
    Obstacle,
)
from jupyter_autotrain.backends.kubernetes.workloads import volumes
from jupyter_autotrain.backends.transfer import sending
from jupyter_autotrain.backends.transfer.folders import FolderManifest
from jupyter_autotrain.backends.transfer.sending import Receiver, send_folder
from jupyter_autotrain.errors import BackendError

_MOST_AT_ONCE = 100  # names stand in the address of a request
_LIFE_S = 6 * 3600
_REQUESTS: Final = {"cpu": "100m", "memory": "128Mi"}
_LIMITS: Final = {"cpu": "1", "memory": "512Mi"}  # named for namespaces whose quota asks for it; enough for any volume
_LOOK_AGAIN_S = 0.2
_SLEEP = "import signal, time; signal.signal(15, lambda *_: exit()); time.sleep({seconds})"
_ANSWER = "import sys\nmain({storage!r}, sys.argv[1:])\n"


class VolumeStorage:
    """Writes by a loader pod.

    Args:
        api: The cluster.
        options: Of the profile.
        metadata: Gives namespace and labels of the pod.
    """

    def __init__(self, api: KubernetesApi, options: JsonObject, metadata: Callable[[], JsonObject]) -> None:
        self._api = api
        self._options = options
        self._metadata = metadata
        self._lock = threading.Lock()
        self._sent: set[tuple[str, str]] = set()

    def entry(self, folder: FolderManifest) -> JsonObject:
        """Return its digest alone: pods find it where they look first."""
        return {"sha256": folder.digest}

    def send(self, folder: FolderManifest, user: str) -> None:
        """Have it on the volume; looked for once for each experiment, as one may be removed with another."""
        with self._lock:  # of trials that begin together one sends it
            if (folder.digest, user) not in self._sent:
                with self._pod() as at:
                    send(self._api, at, folder, user)
                self._sent.add((folder.digest, user))

    def experiments(self, home: str) -> Mapping[str, int]:
        """Look into the folders there."""
        with self._pod() as at:
            return cast("dict[str, int]", json.loads(ask(self._api, at, "list", home)))

    def remove(self, home: str, experiments: Sequence[str]) -> None:
        """Remove their folders, and the archives that are in no other's."""
        with self._pod() as at:
            for begin in range(0, len(experiments), _MOST_AT_ONCE):
                ask(self._api, at, "remove", home, *experiments[begin : begin + _MOST_AT_ONCE])

    def _pod(self) -> AbstractContextManager[PodAddress]:
        metadata: JsonObject = {**self._metadata(), "name": f"autotrain-loader-{secrets.token_hex(6)}"}
        pod = manifest(self._options, str(self._options.get("image") or IMAGE), metadata)
        timeout_s = float(cast("float", self._options.get("start_timeout") or START_TIMEOUT_S))
        return running(self._api, pod, str(self._options.get("python") or PYTHON), timeout_s)


class MountedStorage:
    """Writes where this machine has the volume mounted.

    Args:
        local_path: The folder here that is the volume's.
    """

    def __init__(self, local_path: str) -> None:
        self._root = Path(local_path).expanduser()

    def entry(self, folder: FolderManifest) -> JsonObject:
        """Return its digest alone: pods find it where they look first."""
        return {"sha256": folder.digest}

    def send(self, folder: FolderManifest, user: str) -> None:
        """Have it there, unless it is."""
        root = self._mounted()
        try:
            storage_use.note(str(root), user, folder.digest)
        except OSError as error:
            raise BackendError(f"{root} cannot be written: {error.strerror}.", "", "Look at the mount.") from error
        sending.send_here(folder, f"{root}/{archives.DATA}", archives.kind(folder.digest))

    def experiments(self, home: str) -> Mapping[str, int]:
        """Look into the folders there."""
        return storage_use.experiments(str(self._mounted()), home)

    def remove(self, home: str, experiments: Sequence[str]) -> None:
        """Remove their folders, and the archives that are in no other's."""
        try:
            storage_use.remove(str(self._mounted()), home, experiments)
        except OSError as error:
            path = error.filename or self._root
            raise BackendError(f"{path} cannot be removed: {error.strerror}.", "", "Look at the mount.") from error

    def _mounted(self) -> Path:
        if not self._root.is_dir():
            raise BackendError(
                f"{self._root} is not there.",
                "`local_path:` of the storage is a folder where this machine has the volume mounted.",
                "Mount it, or leave `local_path:` out: then a pod of the cluster writes to the volume.",
            )
        return self._root


def manifest(options: JsonObject, image: str, metadata: JsonObject) -> JsonObject:
    """Return the pod: the storage's volume, nothing that runs by itself. Its user is that of trials.

    Args:
        options: Of the profile, with a storage that is a volume.
        image: Any with a Python.
        metadata: Name, namespace and labels.
    """
    python = str(options.get("python") or "python3")
    storage = volumes.storage_volume(options)
    container: dict[str, Any] = {
        "name": CONTAINER, "image": image, "command": [unexpanded(python), "-c", _SLEEP.format(seconds=_LIFE_S)],
        "volumeMounts": [volumes.storage_mount(options, places.STORAGE)],
        "resources": {"requests": _REQUESTS, "limits": _LIMITS},
    }  # fmt: skip
    spec: dict[str, Any] = {
        "restartPolicy": "Never", "activeDeadlineSeconds": _LIFE_S, "automountServiceAccountToken": False,
        "containers": [container], "volumes": [storage],
    }  # fmt: skip
    given = {
        "nodeSelector": "node_selector", "tolerations": "tolerations", "affinity": "affinity",
        "serviceAccountName": "service_account",
    }  # fmt: skip
    spec.update({name: options[key] for name, key in given.items() if options.get(key)})
    of_pod, of_container = security_contexts(options)
    spec["securityContext"] = of_pod
    container["securityContext"] = of_container
    secrets = cast("list[str]", options.get("image_pull_secrets") or [])
    if secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in secrets]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@contextlib.contextmanager
def running(api: KubernetesApi, pod: JsonObject, python: str, timeout_s: float) -> Iterator[PodAddress]:
    """Give a pod that runs meanwhile.

    Raises:
        BackendError: It does not begin.
    """
    metadata = cast("Mapping[str, str]", pod["metadata"])
    namespace = metadata["namespace"]
    name = metadata["name"]
    api.create(PODS, namespace, pod)
    try:
        _wait(api, namespace, name, timeout_s)
        yield PodAddress(namespace, name, CONTAINER, python)
    finally:
        api.delete(PODS, namespace, name, grace_s=0)


def send(api: KubernetesApi, at: PodAddress, folder: FolderManifest, user: str) -> None:
    """Have a folder on the volume of a running pod, unless it is there.

    Args:
        api: The cluster.
        at: The pod.
        folder: The folder.
        user: The experiment that uses it.

    Raises:
        BackendError: It cannot be sent.
        DataError: A file of it was changed meanwhile.
    """
    ask(api, at, "note", user, folder.digest)
    name = "the volume of `storage:`"
    receiver = Receiver(lambda argv: ExecChannel(api, at, argv, name), at.python, name)
    send_folder(receiver, folder, places.DATA, archives.kind(folder.digest))


def ask(api: KubernetesApi, at: PodAddress, *arguments: str) -> bytes:
    """Have a running pod answer, as `storage_use.main` does; gives what it prints.

    Raises:
        BackendError: It cannot.
    """
    program = Path(storage_use.__file__).read_text(encoding="utf-8") + _ANSWER.format(storage=places.STORAGE)
    done = api.loop.call(exec_command.run(api, at, [at.python, "-c", program, *arguments]))
    if done.exit_code:
        said = _last_line(done.stderr.decode(errors="replace"))
        raise BackendError(
            f"The storage of the profile cannot do that: {said}.",
            "A volume whose files the user of the image may remove.",
            "Look at the volume of `storage:`, then retry.",
        )
    return done.stdout


def _wait(api: KubernetesApi, namespace: str, name: str, timeout_s: float) -> None:
    deadline_s = time.monotonic() + timeout_s
    while True:
        found = api.get(PODS, namespace, name)
        phase = pod_parts.phase(found)
        if phase == "Running":
            return
        told = trial_reasons.preparing([found])
        is_over = phase in {"Failed", "Succeeded"} or told.obstacle is Obstacle.LASTING
        if is_over or time.monotonic() > deadline_s:
            raise BackendError(
                f"The pod that writes to the storage does not begin: it {told.reason or f'is {phase}'}.",
                "A pod with the image of the profile, which mounts the volume of `storage:`.",
                "Correct `storage:` or `image:`; or set `local_path:`, where this machine has the folder mounted.",
            )
        time.sleep(_LOOK_AGAIN_S)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1] if lines else ""
