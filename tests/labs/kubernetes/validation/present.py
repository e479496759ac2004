"""Questions of validation about the objects that are there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tests.labs.kubernetes.objects.resources import Resource, ResourceTable
from tests.labs.kubernetes.objects.values import Json


class PresentObjects(Protocol):
    """The objects of a cluster, read only."""

    resources: ResourceTable

    def shared_list(self, resource: Resource, namespace: str | None) -> tuple[Sequence[Json], str]:
        """Return the objects of a namespace, None: of all; they must not be changed."""
        ...
