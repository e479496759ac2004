"""What is left of a home in a cluster and in the storage of a profile, for `clean`."""

from __future__ import annotations

from collections.abc import Collection

from jupyter_autotrain.backends.kubernetes.objects import naming
from jupyter_autotrain.backends.kubernetes.submission import leftovers
from jupyter_autotrain.backends.kubernetes.submission.session import Session
from jupyter_autotrain.core.home import Home


class HomeLeftovers:
    """What is of this home and needed by none of its experiments.

    Objects are needed by experiments that have not ended. What lies in the storage, checkpoints above all, is kept as
    long as the home has its experiment.

    Args:
        session: The cluster.
        home: The home.
    """

    def __init__(self, session: Session, home: Home) -> None:
        self._session = session
        self._home = home

    def find(self, experiments: Collection[str]) -> list[str]:
        """All of it.

        Args:
            experiments: Ids of those that have not ended.

        Raises:
            BackendError: The cluster does not answer, or refuses.
            DataError: The server of the storage does not answer.
        """
        return [*map(str, self._objects(experiments)), *map(_stored, self._gone(experiments))]

    def remove(self, experiments: Collection[str]) -> list[str]:
        """Remove it; gives what was removed. Errors as `find`."""
        objects = self._objects(experiments)
        leftovers.remove(self._session.api, objects)
        gone = self._gone(experiments)
        storage = self._session.ways.storage
        if gone and storage is not None:
            storage.remove(self._session.home, gone)
        return [*map(str, objects), *map(_stored, gone)]

    def _objects(self, experiments: Collection[str]) -> list[leftovers.ClusterLeftover]:
        session = self._session
        return leftovers.find(session.api, session.namespace, session.home, experiments)

    def _gone(self, experiments: Collection[str]) -> list[str]:
        """Experiments that the storage knows and the home does not."""
        storage = self._session.ways.storage
        if storage is None:
            return []
        needed = {naming.label_value(one) for one in experiments}
        kept = {naming.label_value(path.name) for path in self._home.root.glob("experiments/*")}
        return [name for name in storage.experiments(self._session.home) if name not in needed | kept]


def _stored(experiment: str) -> str:
    return f"what experiment {experiment} has in the storage"
