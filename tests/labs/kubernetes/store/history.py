"""The changes of the objects of a cluster, for those who watch them."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.labs.kubernetes.objects.errors import expired
from tests.labs.kubernetes.objects.resources import Resource
from tests.labs.kubernetes.objects.values import Json

Callback = Callable[[str, Resource, Json], None]
_KEPT = 20_000  # changes that watches can go back to


@dataclass(frozen=True, slots=True)
class Change:
    """One change of an object: ADDED, MODIFIED or DELETED. The objects are shared: they must not be changed."""

    version: int
    type: str
    resource: Resource
    found: Json
    previous: Json | None


class History:
    """Changes in the order of their versions. Its owner keeps threads apart."""

    def __init__(self) -> None:
        self.version = 1000
        self.oldest = self.version
        self._changes: list[Change] = []
        self._callbacks: list[Callback] = []

    def record(self, event_type: str, resource: Resource, found: Json, previous: Json | None) -> None:
        """Give an object the next version, and tell it."""
        self.version += 1
        found["metadata"]["resourceVersion"] = str(self.version)
        self._changes.append(Change(self.version, event_type, resource, found, previous))
        if len(self._changes) > _KEPT:
            self._changes = self._changes[_KEPT // 2 :]
            self.oldest = self._changes[0].version - 1
        for callback in self._callbacks:
            callback(event_type, resource, found)

    def subscribe(self, callback: Callback) -> None:
        """Tell each later change."""
        self._callbacks = [*self._callbacks, callback]

    def unsubscribe(self, callback: Callback) -> None:
        """No longer."""
        self._callbacks = [item for item in self._callbacks if item != callback]

    def since(self, version: int) -> Sequence[Change]:
        """Return the changes after a version.

        Raises:
            ApiError: 410: They are no longer known.
        """
        if version < self.oldest:
            raise expired(version, self.oldest)
        first = bisect.bisect_right(self._changes, version, key=lambda change: change.version)
        return self._changes[first:]

    def compact(self) -> None:
        """Forget all changes so far."""
        self._changes = []
        self.version += 1
        self.oldest = self.version
