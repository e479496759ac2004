"""Requests for the log of a container."""

from __future__ import annotations

from tests.labs.kubernetes.objects.errors import bad_request
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.server.handlers import ObjectsHandler
from tests.labs.kubernetes.server.logs import LogReader, LogRequest, since_time


def container_names(pod: Json) -> list[str]:
    """All containers of a pod, those that initialize it last."""
    spec = pod["spec"]
    return [item["name"] for item in [*spec.get("containers", []), *spec.get("initContainers", [])]]


def container_of(pod: Json, asked: str) -> str:
    """Return the container that a request means.

    Raises:
        ApiError: 400: It names none, or there are several.
    """
    names = container_names(pod)
    name = pod["metadata"]["name"]
    if asked and asked not in names:
        raise bad_request(f"container {asked} is not valid for pod {name}")
    regular = [item["name"] for item in pod["spec"]["containers"]]
    if not asked and len(regular) > 1:
        raise bad_request(f"a container name must be specified for pod {name}, choose one of: [{' '.join(names)}]")
    return asked or regular[0]


def waiting_reason(pod: Json, container: str) -> str:
    """Why a container has not started."""
    status = pod.get("status", {})
    for found in [*status.get("containerStatuses", []), *status.get("initContainerStatuses", [])]:
        if found["name"] == container and "waiting" in found.get("state", {}):
            return str(found["state"]["waiting"].get("reason", ""))
    return "ContainerCreating"


class LogHandler(ObjectsHandler):
    """The log of a container."""

    async def get(self) -> None:
        """Answer with the text, as it comes."""
        pod = self.server.store.get(self.target.resource, self.target.namespace, self.target.name)
        container = container_of(pod, self.option("container"))
        if not pod["spec"].get("nodeName"):
            self.set_status(204)
            return
        reader = self.reader(pod, container)
        self.set_header("Content-Type", "text/plain")
        await self.stream(reader.chunks())

    def reader(self, pod: Json, container: str) -> LogReader:
        """Return what reads the log that is asked for.

        Raises:
            ApiError: 400: There is none.
        """
        previous = self.flag("previous")
        name = pod["metadata"]["name"]
        runtime = self.server.runtime
        path = runtime.log_path(pod, container, previous=previous) if runtime else None
        if path is None and previous:
            raise bad_request(f'previous terminated container "{container}" in pod "{name}" not found')
        if path is None or runtime is None:
            reason = waiting_reason(pod, container)
            raise bad_request(_not_started(pod, container, reason))
        since = since_time(self.server.store.clock(), self.option("sinceSeconds"), self.option("sinceTime"))
        request = LogRequest(
            self.flag("follow") and not previous, self.flag("timestamps"), since, self.number("tailLines"),
            self.number("limitBytes"),
        )  # fmt: skip

        def writes_still() -> bool:
            is_current = runtime.log_path(pod, container, previous=False) == path  # else it was started again
            return is_current and runtime.writes_log(pod, container)

        return LogReader(path, request, writes_still)

    def post(self) -> None:
        """405."""
        self.refuse_method()

    put = patch = delete = post


def _not_started(pod: Json, container: str, reason: str) -> str:
    name = pod["metadata"]["name"]
    if reason in ("ErrImagePull", "ImagePullBackOff", "InvalidImageName"):
        return f'container "{container}" in pod "{name}" is waiting to start: trying and failing to pull image'
    return f'container "{container}" in pod "{name}" is waiting to start: {reason}'
