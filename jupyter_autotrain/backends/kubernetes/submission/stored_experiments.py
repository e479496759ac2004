"""What the experiments of a home have in the storage of a profile, for a deletion and for `clean`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from jupyter_autotrain.backends.kubernetes.objects import naming, pod_view
from jupyter_autotrain.backends.kubernetes.objects.object_types import PODS
from jupyter_autotrain.backends.kubernetes.submission.session import Session
from jupyter_autotrain.core.home import Home

_ENDED = frozenset({"Succeeded", "Failed"})


def sizes(session: Session, home: Home) -> Mapping[str, int]:
    """Those that have no pod which may run, with the bytes of what their trials keep there.

    Raises:
        BackendError: The cluster does not answer, or the storage cannot be asked.
        DataError: The server of the storage does not answer.
    """
    storage = session.ways.storage
    found = storage.experiments(session.home) if storage is not None else {}
    ids = {naming.label_value(path.name): path.name for path in home.root.glob("experiments/*")}
    running = _running(session) if found else set()
    return {ids.get(name, name): size for name, size in found.items() if name not in running}


def remove(session: Session, experiments: Collection[str]) -> None:
    """Remove what these experiments have there, but for those with a pod that may run. Errors as `sizes`."""
    storage = session.ways.storage
    if storage is None:
        return
    names = {naming.label_value(experiment) for experiment in experiments} - _running(session)
    if names:
        storage.remove(session.home, sorted(names))


def _running(session: Session) -> set[str]:
    """The experiments of this home that have pods which have not ended."""
    found = session.api.list(PODS, session.namespace, naming.selector_of_home(session.home))
    return {naming.label(pod, naming.LABEL_EXPERIMENT) for pod in found if pod_view.phase(pod) not in _ENDED}
