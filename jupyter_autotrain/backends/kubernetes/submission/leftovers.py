"""What is left of a home in a cluster: objects that carry its label and belong to no experiment that needs them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.api_errors import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.manifests.trial_manifests import POD_GROUP
from jupyter_autotrain.backends.kubernetes.objects import naming
from jupyter_autotrain.backends.kubernetes.objects.fields import items, text
from jupyter_autotrain.backends.kubernetes.objects.object_types import (
    CONFIG_MAPS,
    NOT_SERVED_CODES,
    PODS,
    SECRETS,
    SERVICES,
    TRIAL_TYPES,
)
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.backends.kubernetes.submission.session import Session
from jupyter_autotrain.core.json import JsonObject

CLAIMS: Final = ObjectType("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
OWN_TYPES: Final = (*TRIAL_TYPES, POD_GROUP, PODS, SERVICES, SECRETS, CLAIMS, CONFIG_MAPS)


@dataclass(frozen=True, slots=True)
class ClusterLeftover:
    """An object of a home that no experiment needs."""

    object_type: ObjectType
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.object_type.kind} {self.name} in namespace {self.namespace}"


def find(session: Session, experiments: Collection[str]) -> list[ClusterLeftover]:
    """All of them, owners first. One request per kind.

    What has no experiment of its own (code that several share, a pod that writes to a volume) stays as long as the
    home has an experiment that may need it, unless all that owned it is gone.

    Args:
        session: The cluster.
        experiments: Ids of the experiments that may still need what is theirs.

    Raises:
        BackendError: The cluster does not answer, or refuses.
    """
    needed = {naming.label_value(experiment) for experiment in experiments}
    namespace = session.namespace
    listed = [(one, _of_home(session.api, one, namespace, session.home)) for one in OWN_TYPES]
    kept = {text(found, "metadata", "uid") for _, objects in listed for found in objects if _label(found) in needed}
    found = []
    for object_type, objects in listed:
        names = [naming.name_of(one) for one in objects if not _is_needed(one, needed, kept)]
        found += [ClusterLeftover(object_type, namespace, name) for name in names]
    return found


def remove(api: KubernetesApi, leftovers: Sequence[ClusterLeftover]) -> None:
    """Delete them, each by its own name.

    Raises:
        BackendError: The cluster does not answer, or refuses.
    """
    for leftover in leftovers:
        api.delete(leftover.object_type, leftover.namespace, leftover.name)


def _of_home(api: KubernetesApi, object_type: ObjectType, namespace: str, home: str) -> Sequence[JsonObject]:
    try:
        found = api.list(object_type, namespace, naming.selector_of_home(home))
    except ApiRefusedError as error:
        if error.code in NOT_SERVED_CODES:
            return ()
        raise
    return [one for one in found if not text(one, "metadata", "deletionTimestamp")]


def _is_needed(found: JsonObject, needed: Collection[str], kept: Collection[str]) -> bool:
    if _label(found):
        return _label(found) in needed
    owners = list(_owners(found))
    if not owners:
        return bool(needed)
    return any(owner in kept for owner in owners)


def _label(found: JsonObject) -> str:
    return naming.label(found, naming.LABEL_EXPERIMENT)


def _owners(found: JsonObject) -> Iterator[str]:
    for owner in items(found, "metadata", "ownerReferences"):
        yield text(owner, "uid")
