"""What is left of a home in a cluster: objects that carry its label and belong to no experiment that needs them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.api_errors import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.objects import naming
from jupyter_autotrain.backends.kubernetes.objects.fields import items, text
from jupyter_autotrain.backends.kubernetes.objects.object_types import JOBS, NOT_SERVED_CODES, OWN_TYPES
from jupyter_autotrain.backends.kubernetes.objects.workload import ObjectType
from jupyter_autotrain.backends.kubernetes.submission.session import Session
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.errors import BackendError

_FORBIDDEN = 403


@dataclass(frozen=True, slots=True)
class ClusterLeftover:
    """An object of a home that no experiment needs."""

    object_type: ObjectType
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.object_type.kind} {self.name} in namespace {self.namespace}"


@dataclass(frozen=True, slots=True)
class Leftovers:
    """What is left of a home in a namespace.

    Attributes:
        namespace: Which.
        objects: What is left, as far as that is known; owners first.
        unlisted: The kinds of which it is not known.
    """

    namespace: str
    objects: Sequence[ClusterLeftover]
    unlisted: Sequence[str]

    def names(self) -> list[str]:
        """What is left.

        Raises:
            BackendError: It is not known of all kinds: says of which, and what there is of the others.
        """
        names = [str(one) for one in self.objects]
        if self.unlisted:
            known = f" Of the others there are: {', '.join(names)}." if names else ""
            kinds = ", ".join(self.unlisted)
            raise _not_allowed(f"You may not list {kinds} in the namespace {self.namespace}.{known}")
        return names


def find(session: Session, experiments: Collection[str]) -> Leftovers:
    """All of them. One request per kind.

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
    asked = [(one, _of_home(session.api, one, namespace, session.home)) for one in OWN_TYPES]
    listed = [(one, objects) for one, objects in asked if objects is not None]
    kept = {text(found, "metadata", "uid") for _, objects in listed for found in objects if _label(found) in needed}
    found = []
    for object_type, objects in listed:
        names = [naming.name_of(one) for one in objects if not _is_needed(one, needed, kept)]
        found += [ClusterLeftover(object_type, namespace, name) for name in names]
    return Leftovers(namespace, found, [one.plural for one, objects in asked if objects is None])


def remove(api: KubernetesApi, left: Leftovers) -> Sequence[str]:
    """Delete them, each by its own name; gives what was deleted.

    Raises:
        BackendError: The cluster does not answer; or it refuses some, or to tell of all kinds: the others are deleted.
    """
    refused = []
    for one in left.objects:
        try:
            api.delete(one.object_type, one.namespace, one.name)
        except ApiRefusedError as error:
            if error.code != _FORBIDDEN:
                raise
            refused.append(str(one))
    if refused:
        raise _not_allowed(f"You may not delete {', '.join(refused)}.")
    return left.names()


def _not_allowed(found: str) -> BackendError:
    return BackendError(found, "", "Ask for the right: `%autotrain backends check` says what is missing.")


def _of_home(api: KubernetesApi, object_type: ObjectType, namespace: str, home: str) -> Sequence[JsonObject] | None:
    """The objects of a kind; None where the user may not list it, though every cluster has it."""
    try:
        found = api.list(object_type, namespace, naming.selector_of_home(home))
    except ApiRefusedError as error:
        if error.code not in NOT_SERVED_CODES:
            raise
        is_everywhere = not object_type.group or object_type == JOBS
        return None if error.code == _FORBIDDEN and is_everywhere else ()
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
