"""The leftovers of a home in a cluster, and the files of its experiments in the storage: for deletions and `clean`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.kubernetes.access.api import KubernetesApi
from jupyter_autotrain.backends.kubernetes.access.connection import ApiRefusedError
from jupyter_autotrain.backends.kubernetes.objects import naming, pod_parts
from jupyter_autotrain.backends.kubernetes.objects.fields import items, text
from jupyter_autotrain.backends.kubernetes.objects.workload import JOBS, NOT_SERVED_CODES, OWN_TYPES, PODS, ObjectType
from jupyter_autotrain.backends.kubernetes.session import Session
from jupyter_autotrain.core.home import Home
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
    """The leftovers of a home in a namespace.

    Attributes:
        namespace: Which.
        objects: What is left, as far as that is known; owners first.
        unlisted: The kinds of which it is not known.
    """

    namespace: str
    objects: Sequence[ClusterLeftover]
    unlisted: Sequence[str]

    def names(self) -> list[str]:
        """Return what is left.

        Raises:
            BackendError: It is not known of all kinds: says of which, and what there is of the others.
        """
        names = list(map(str, self.objects))
        if self.unlisted:
            known = f" Of the others there are: {', '.join(names)}." if names else ""
            kinds = ", ".join(self.unlisted)
            raise _not_allowed(f"You may not list {kinds} in the namespace {self.namespace}.{known}")
        return names


def find(session: Session, experiments: Collection[str]) -> Leftovers:
    """Return all of them. One request per kind.

    What has no experiment of its own (code that several share, a pod that writes to a volume) stays as long as the
    home has an experiment that may need it, unless all that owned it is gone.

    Args:
        session: The cluster.
        experiments: Ids of the experiments that may still need what is theirs.

    Raises:
        BackendError: The cluster does not answer, or refuses.
    """
    needed = set(map(naming.label_value, experiments))
    namespace = session.namespace
    listed: dict[ObjectType, Sequence[JsonObject]] = {}
    unlisted = []
    for one in OWN_TYPES:
        objects = _of_home(session.api, one, namespace, session.home)
        if objects is None:
            unlisted.append(one.plural)
        else:
            listed[one] = objects
    kept = _kept(chain.from_iterable(listed.values()), needed)
    found = []
    for object_type, objects in listed.items():
        left = [one for one in objects if not _is_needed(one, needed, kept)]
        found += [ClusterLeftover(object_type, namespace, naming.name_of(one)) for one in left]
    return Leftovers(namespace, found, unlisted)


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
    """Return the objects of a kind; None where the user may not list it, though every cluster has it."""
    try:
        found = api.list(object_type, namespace, naming.selector_of_home(home))
    except ApiRefusedError as error:
        if error.code not in NOT_SERVED_CODES:
            raise
        is_everywhere = not object_type.group or object_type == JOBS
        return None if error.code == _FORBIDDEN and is_everywhere else ()
    return [one for one in found if not text(one, "metadata", "deletionTimestamp")]


def _kept(objects: Iterable[JsonObject], needed: Collection[str]) -> set[str]:
    """Return the uids of the objects of these experiments."""
    return {text(found, "metadata", "uid") for found in objects if _label(found) in needed}


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


_ENDED = frozenset({"Succeeded", "Failed"})


def stored_sizes(session: Session, home: Home) -> Mapping[str, int]:
    """Return those that have no pod which may run, with the bytes of what their trials keep there.

    Raises:
        BackendError: The cluster does not answer, or the storage cannot be asked.
        DataError: The server of the storage does not answer.
    """
    storage = session.ways.storage
    found = storage.experiments(session.home) if storage is not None else {}
    ids = {naming.label_value(path.name): path.name for path in home.root.glob("experiments/*")}
    running = _running(session) if found else set()
    return {ids.get(name, name): size for name, size in found.items() if name not in running}


def remove_stored(session: Session, experiments: Collection[str]) -> None:
    """Remove what these experiments have there, but for those with a pod that may run. Errors as `sizes`."""
    storage = session.ways.storage
    if storage is None:
        return
    names = set(map(naming.label_value, experiments)) - _running(session)
    if names:
        storage.remove(session.home, sorted(names))


def _running(session: Session) -> set[str]:
    """Return the experiments of this home that have pods which have not ended."""
    found = session.api.list(PODS, session.namespace, naming.selector_of_home(session.home))
    return {naming.label(pod, naming.LABEL_EXPERIMENT) for pod in found if pod_parts.phase(pod) not in _ENDED}
