"""What a cluster serves, asked once in a while: a choice is made for every trial, and rarely another one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

from jupyter_autotrain.backends.kubernetes.access.api_errors import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.access.served_schemas import ServedSchemas
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import BackendError

_KNOWN_S = 60.0
_SCHEMAS_KNOWN_S = 600.0  # they are large, and an operator is rarely installed
_UNREADABLE = (403, 404)
_List = Callable[[ObjectType, "str | None"], Sequence[JsonObject]]
T = TypeVar("T")


class ServedCluster:
    """A cluster, as `Served`. Thread-safe.

    Args:
        make_schemas: Makes what knows the schemas that the cluster serves.
        list_objects: Lists the objects of a kind in a namespace, in all of the cluster for None.
    """

    def __init__(self, make_schemas: Callable[[], ServedSchemas], list_objects: _List) -> None:
        self._make_schemas = make_schemas
        self._list = list_objects
        self._lock = threading.Lock()
        self._known: dict[tuple[object, ...], tuple[float, object]] = {}

    def answers(self) -> bool:
        """Whether there is a cluster that can be asked."""
        try:
            self._schemas().groups()
        except BackendError:
            return False
        return True

    def has(self, object_type: ObjectType) -> bool:
        """Whether it serves this kind in this version.

        Raises:
            BackendError: The cluster does not answer.
        """
        return self._schemas().schema(object_type) is not None

    def schema(self, object_type: ObjectType) -> JsonObject:
        """The OpenAPI schema of the objects of a kind; empty where it serves none.

        Raises:
            BackendError: The cluster does not answer.
        """
        found = self._schemas().schema(object_type)
        return {} if found is None else found.root

    def objects(self, object_type: ObjectType, namespace: str) -> Sequence[JsonObject]:
        """The objects of a kind in a namespace, in all of the cluster for ""; none where they may not be listed.

        Raises:
            BackendError: The cluster does not answer.
        """
        return self._remembered((object_type, namespace), lambda: self._listed(object_type, namespace))

    def _listed(self, object_type: ObjectType, namespace: str) -> Sequence[JsonObject]:
        try:
            return self._list(object_type, namespace or None)
        except ApiRefusedError as error:
            if error.code in _UNREADABLE:
                return ()
            raise

    def _schemas(self) -> ServedSchemas:
        return self._remembered(("schemas",), self._make_schemas, _SCHEMAS_KNOWN_S)

    def _remembered(self, key: tuple[object, ...], ask: Callable[[], T], most_s: float = _KNOWN_S) -> T:
        with self._lock:
            known = self._known.get(key)
        if known is not None and time.monotonic() - known[0] < most_s:
            return known[1]  # type: ignore[return-value] # what is kept under a key is of its kind
        found = ask()
        with self._lock:
            self._known[key] = (time.monotonic(), found)
        return found
