"""Requests to the API server for callers in any thread: JSON in and out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.backends.kubernetes.access.connection import ApiConnection, ApiRefusedError, Query
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
_PAGE = 500  # objects of a list that are asked for at once, as kubectl does
_GONE = 410


def _as_it_is(found: JsonObject) -> JsonObject:
    return found


class KubernetesApi(ApiConnection):
    """A cluster's API; what it does not say itself is that of its connection."""

    @property
    def address(self) -> str:
        """The URL of the API server.

        Raises:
            BackendError: There is no access.
        """
        return self.loop.call(self._access.get()).host

    def request(self, method: str, path: str, body: JsonValue = None, query: Query | None = None) -> JsonObject:
        """Send a request.

        Raises:
            ApiRefusedError: The server refuses.
            BackendUnavailableError: It does not answer.
        """
        return self.loop.call(self.arequest(method, path, body, query))

    def create(self, object_type: ObjectType, namespace: str, body: JsonObject) -> JsonObject:
        """Make an object."""
        return self.request("POST", object_type.path(namespace), body, {"fieldValidation": "Strict"})

    def get(self, object_type: ObjectType, namespace: str, name: str) -> JsonObject:
        """Return one object."""
        return self.request("GET", object_type.path(namespace, name))

    def list(
        self, object_type: ObjectType, namespace: str | None, label_selector: str = "",
        slim: Callable[[JsonObject], JsonObject] = _as_it_is,
    ) -> list[JsonObject]:  # fmt: skip
        """Return objects of a namespace, or of all; `slim` as in `alist`."""
        path = object_type.path(namespace or "")
        return [*self.loop.call(self.alist(path, selectors(label_selector), slim))[0]]

    async def alist(
        self, path: str, query: Mapping[str, str], slim: Callable[[JsonObject], JsonObject] = _as_it_is
    ) -> tuple[Sequence[JsonObject], str]:
        """Return objects in pages, and the version from which they can be watched.

        Args:
            path: Of their collection.
            query: The selectors.
            slim: Takes away what nobody reads of an object, so that few whole ones are held at once.

        Raises:
            ApiRefusedError: The server refuses.
            BackendUnavailableError: It does not answer.
        """
        try:
            return await _pages(self, path, {**query, "limit": str(_PAGE)}, slim)
        except ApiRefusedError as error:
            if error.code != _GONE:
                raise
            return await _pages(self, path, query, slim)  # the pages have expired in the middle: all at once

    def patch(
        self, object_type: ObjectType, namespace: str, name: str, patch: JsonValue, content_type: str = STRATEGIC_PATCH
    ) -> JsonObject:
        """Change an object."""
        work = self.arequest("PATCH", object_type.path(namespace, name), patch, None, content_type)
        return self.loop.call(work)

    def delete(
        self, object_type: ObjectType, namespace: str, name: str, *, propagation: str = "Background",
        grace_s: float | None = None,
    ) -> None:  # fmt: skip
        """Delete an object; one that is not there is deleted already."""
        options: JsonObject = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        if grace_s is not None:
            options = {**options, "gracePeriodSeconds": max(int(grace_s), 0)}
        try:
            self.request("DELETE", object_type.path(namespace, name), options)
        except ApiRefusedError as error:
            if error.reason != "NotFound":
                raise

    def delete_as_it_was(self, object_type: ObjectType, found: JsonObject) -> None:
        """Delete an object, unless somebody has changed it since."""
        metadata = cast("JsonObject", found["metadata"])
        conditions: JsonObject = {name: metadata[name] for name in ("uid", "resourceVersion")}
        options: JsonObject = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": conditions}
        try:
            self.request("DELETE", object_type.path(str(metadata["namespace"]), str(metadata["name"])), options)
        except ApiRefusedError as error:
            if error.reason not in {"NotFound", "Conflict"}:
                raise

    def delete_collection(self, object_type: ObjectType, namespace: str, label_selector: str) -> None:
        """Delete all objects with these labels, and in the background what they own."""
        options: JsonObject = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        self.request("DELETE", object_type.path(namespace), options, {"labelSelector": label_selector})

    def create_unless_there(self, object_type: ObjectType, namespace: str, manifest: JsonObject) -> None:
        """Make an object; one of its name that is there already is as good."""
        try:
            self.create(object_type, namespace, manifest)
        except ApiRefusedError as error:
            if error.reason != "AlreadyExists":
                raise

    def patch_if_there(self, object_type: ObjectType, namespace: str, name: str, patch: JsonObject) -> bool:
        """Change an object by a strategic merge patch; False where it is gone."""
        try:
            self.patch(object_type, namespace, name, patch)
        except ApiRefusedError as error:
            if error.reason != "NotFound":
                raise
            return False
        return True


async def _pages(
    api: ApiConnection, path: str, query: Mapping[str, str], slim: Callable[[JsonObject], JsonObject]
) -> tuple[list[JsonObject], str]:
    found: list[JsonObject] = []
    token = ""
    while True:
        more = {"continue": token} if token else {}
        answer = await api.arequest("GET", path, None, {**query, **more})
        found += list(map(slim, cast("list[JsonObject]", answer.get("items") or [])))
        metadata = cast("JsonObject", answer.get("metadata") or {})
        token = str(metadata.get("continue") or "")
        if not token:
            return found, str(metadata.get("resourceVersion") or "0")


def selectors(label_selector: str = "", field_selector: str = "") -> dict[str, str]:
    """Return the query of a list."""
    asked = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {name: value for name, value in asked.items() if value}
