"""Why pilots do not run: what they wait for, and when no more of them are made."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_autotrain.backends.kubernetes.following.cluster_view import ClusterView
from jupyter_autotrain.backends.kubernetes.objects import naming
from jupyter_autotrain.backends.kubernetes.objects.fields import condition, items, text
from jupyter_autotrain.backends.kubernetes.objects.workload import WorkloadState
from jupyter_autotrain.backends.kubernetes.reasons import start_reasons, trial_reasons
from jupyter_autotrain.core.json import JsonObject
from jupyter_autotrain.core.states import TrialState

_MOST_FAILED = 3  # in a row; one may be bad luck, as with a node that is out of order


class PilotFaults:
    """What is wrong with the pilots of one namespace.

    Args:
        view: What there is in it.
    """

    def __init__(self, view: ClusterView) -> None:
        self._view = view
        self._failed: dict[str, set[str]] = {}  # by pool, the uids of pilots, since one of it has taken a trial
        self._counted: set[str] = set()

    def of_pool(self, pool: str, pilots: Sequence[JsonObject]) -> WorkloadState | None:
        """How trials end whose pilots fail again and again; None where others may run them.

        Args:
            pool: Which.
            pilots: All Jobs of its pilots that are there.
        """
        here = self._failed.setdefault(pool, set())
        told: WorkloadState | None = None
        for pilot in pilots:
            ended = trial_reasons.ended(self._pods(pilot)) if condition(pilot, "Failed") else None
            uid = naming.uid_of(pilot)
            if ended is not None and ended.state is TrialState.FAILED and uid not in self._counted:
                here.add(uid)
                told = ended
        if told is None or len(here) < _MOST_FAILED:
            return None
        self.forget(pool)
        return told

    def forget(self, pool: str) -> None:
        """One of its pilots runs; those that have failed before tell nothing any more."""
        self._counted |= self._failed.pop(pool, set())

    def waits_for(self, pilots: Sequence[JsonObject]) -> str:
        """What pilots wait for none of which has started; "" where that is not known."""
        for pilot in pilots:
            pods = self._pods(pilot)
            events = self._view.events_about(naming.name_of(pilot), pods)
            if told := start_reasons.preparing(pods, events, pilot).reason:
                return told
        return ""

    def _pods(self, pilot: JsonObject) -> list[JsonObject]:
        return [pod for pod in self._view.pods.all() if pilot_of(pod, "uid") == naming.uid_of(pilot)]


def pilot_of(pod: JsonObject, name: str) -> str:
    """The name or the uid of the pilot that a pod is of."""
    owners = items(pod, "metadata", "ownerReferences")
    return text(owners[0], name) if owners else ""
