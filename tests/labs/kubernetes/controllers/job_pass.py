"""One look at a Job: what has ended is counted, then it is decided, and pods are made or deleted."""

from __future__ import annotations

from collections.abc import Sequence

from tests.labs.kubernetes.controllers import job_policy
from tests.labs.kubernetes.controllers.job_pods import (
    FINALIZER,
    create_pod,
    ended_at,
    format_indexes,
    index_of,
    is_indexed,
    is_ready,
    is_terminal,
    is_terminating,
    parse_indexes,
    remove_finalizer,
)
from tests.labs.kubernetes.controllers.recorder import EventRecorder
from tests.labs.kubernetes.controllers.times import Conditions, seconds_of, stamp
from tests.labs.kubernetes.objects.resources import JOBS, PODS
from tests.labs.kubernetes.objects.values import Json
from tests.labs.kubernetes.store.object_store import ObjectStore

_LONGEST_BACKOFF_S = 600.0
_SETTLED_S = 0.02
_REFUSED_S = 1.0  # before a pod that was refused is asked for again


class JobPass:
    """One look at a Job."""

    def __init__(
        self, store: ObjectStore, events: EventRecorder, job: Json, pods: list[Json], first_backoff_s: float
    ) -> None:
        self._store = store
        self._events = events
        self._job = job
        self._first_backoff_s = first_backoff_s
        self._now = store.clock()
        status = job.get("status", {})
        self._conditions = Conditions(status.get("conditions", ()), self._now)
        self._succeeded = int(status.get("succeeded", 0))
        self._failed = int(status.get("failed", 0))
        self._completed = parse_indexes(status.get("completedIndexes", ""))
        self._lost = parse_indexes(status.get("failedIndexes", ""))
        self._pods = pods
        self._counted = [pod for pod in pods if self._is_new(pod)]
        self._start_time: str | None = status.get("startTime")
        self._completion_time = status.get("completionTime")
        self._verdict: tuple[str, str] | None = None  # of a failure

    def _is_new(self, pod: Json) -> bool:
        """Return whether a pod has ended and is not counted yet."""
        if FINALIZER not in pod["metadata"].get("finalizers", ()):
            return False
        waits = self._job["spec"].get("podReplacementPolicy") == "Failed" or self._job["spec"].get("podFailurePolicy")
        return is_terminal(pod) or (is_terminating(pod) and not waits)

    def run(self) -> float | None:
        """Do it; seconds until there is more to do, None: at the next change."""
        finished = self._conditions.is_true("Complete") or self._conditions.is_true("Failed")
        self._count()
        wait = None if finished else self._decide()
        self._write()
        for pod in self._counted:
            remove_finalizer(self._store, pod)
        return wait

    def _count(self) -> None:
        for pod in self._counted:
            if pod.get("status", {}).get("phase") == "Succeeded":
                self._count_success(pod)
            else:
                self._count_failure(pod)

    def _count_success(self, pod: Json) -> None:
        if not is_indexed(self._job):
            self._succeeded += 1
            return
        self._completed.add(index_of(pod))
        self._succeeded = len(self._completed)

    def _count_failure(self, pod: Json) -> None:
        action, message = job_policy.action_for(self._job, pod)
        if action == "Ignore":
            return
        self._failed += 1
        if action == "FailJob":
            self._verdict = ("PodFailurePolicy", message)
        if action == "FailIndex":
            self._lost.add(index_of(pod))

    @property
    def _active(self) -> list[Json]:
        return [pod for pod in self._pods if not is_terminal(pod) and not is_terminating(pod)]

    @property
    def _terminating(self) -> list[Json]:
        return [pod for pod in self._pods if is_terminating(pod)]

    def _decide(self) -> float | None:
        if self._conditions.is_true("FailureTarget") or self._conditions.is_true("SuccessCriteriaMet"):
            self._end()
            return None
        if self._job["spec"].get("suspend"):
            self._suspend()
            return None
        self._begin()
        verdict = self._verdict or self._failure()
        success = None if verdict else self._success()
        if verdict:
            self._conditions.set("FailureTarget", "True", *verdict)
        elif success:
            self._conditions.set("SuccessCriteriaMet", "True", *success)
        else:
            return self._manage()
        return _SETTLED_S  # the last condition comes later, with a write of its own

    def _begin(self) -> None:
        if self._start_time is None:
            self._start_time = stamp(self._now)
        if self._conditions.is_true("Suspended"):
            self._conditions.set("Suspended", "False", "JobResumed", "Job resumed")
            self._start_time = stamp(self._now)
            self._events.record(self._job, "Resumed", "Job resumed")

    def _suspend(self) -> None:
        for pod in self._active:
            self._delete_uncounted(pod)
        if not self._conditions.is_true("Suspended"):
            self._conditions.set("Suspended", "True", "JobSuspended", "Job suspended")
            self._events.record(self._job, "Suspended", "Job suspended")
        self._start_time = None

    def _deadline_in(self) -> float | None:
        limit = self._job["spec"].get("activeDeadlineSeconds")
        if limit is None or self._start_time is None:
            return None
        return seconds_of(self._start_time) + float(limit) - self._now

    def _failure(self) -> tuple[str, str] | None:
        spec = self._job["spec"]
        deadline_in = self._deadline_in()
        if deadline_in is not None and deadline_in <= 0:
            return "DeadlineExceeded", "Job was active longer than specified deadline"
        if spec.get("backoffLimitPerIndex") is not None:
            return self._failure_of_indexes()
        failures = self._failed
        if spec["template"]["spec"].get("restartPolicy") == "OnFailure":
            failures += job_policy.restarts(self._active)
        if failures > int(spec.get("backoffLimit", 6)):
            return "BackoffLimitExceeded", "Job has reached the specified backoff limit"
        return None

    def _failure_of_indexes(self) -> tuple[str, str] | None:
        spec = self._job["spec"]
        failed = [pod for pod in self._pods if pod.get("status", {}).get("phase") == "Failed"]
        self._lost = job_policy.failed_indexes(self._job, job_policy.count_by_index(failed), self._lost)
        most = spec.get("maxFailedIndexes")
        if most is not None and len(self._lost) > most:
            return "MaxFailedIndexesExceeded", "Job has exceeded the specified maximal number of failed indexes"
        if self._lost and len(self._lost | self._completed) >= int(spec["completions"]):
            return "FailedIndexes", "Job has failed indexes"
        return None

    def _success(self) -> tuple[str, str] | None:
        found = job_policy.success_message(self._job, self._succeeded, self._completed)
        if found is None and self._job["spec"].get("completions") is None and self._succeeded and not self._active:
            return "CompletionsReached", "Reached expected number of succeeded pods"
        return found

    def _end(self) -> None:
        for pod in self._active:
            self._delete(pod)
        if self._active or self._terminating:
            return
        failed = self._conditions.find("FailureTarget")
        met = failed or self._conditions.find("SuccessCriteriaMet")
        assert met is not None
        self._conditions.set("Failed" if failed else "Complete", "True", met["reason"], met["message"])
        if failed:
            self._events.record(self._job, met["reason"], met["message"], "Warning")
        else:
            self._completion_time = stamp(self._now)
            self._events.record(self._job, "Completed", "Job completed")

    def _delete(self, pod: Json) -> None:
        metadata = pod["metadata"]
        self._store.delete(PODS, metadata["namespace"], metadata["name"], uid=metadata["uid"])
        self._events.record(self._job, "SuccessfulDelete", f"Deleted pod: {metadata['name']}")

    def _delete_uncounted(self, pod: Json) -> None:
        remove_finalizer(self._store, pod)
        self._delete(pod)

    def _manage(self) -> float | None:
        """Make the pods that are missing; seconds until there is more to do."""
        missing = self._missing()
        surplus = self._active[int(self._job["spec"].get("parallelism", 1)) :]
        for pod in surplus:
            self._delete_uncounted(pod)
        wait = self._backoff_left() if missing else 0.0
        deadline_in = self._deadline_in()
        if wait > 0:
            return min(wait, deadline_in or wait)
        for index in missing:
            if not create_pod(self._store, self._events, self._job, index):
                return _REFUSED_S
        return deadline_in

    def _missing(self) -> Sequence[int | None]:
        spec = self._job["spec"]
        occupied = self._active
        if spec.get("podReplacementPolicy") == "Failed" or spec.get("podFailurePolicy"):
            occupied = occupied + self._terminating
        free = max(int(spec.get("parallelism", 1)) - len(occupied), 0)
        if is_indexed(self._job):
            taken = {index_of(pod) for pod in occupied} | self._completed | self._lost
            return job_policy.free_indexes(int(spec["completions"]), taken)[:free]
        return [None] * job_policy.still_wanted(self._job, self._succeeded, len(occupied), free)

    def _backoff_left(self) -> float:
        failures = [pod for pod in self._pods if pod.get("status", {}).get("phase") == "Failed"]
        if not failures or not self._failed:
            return 0.0
        delay: float = min(self._first_backoff_s * 2 ** (self._failed - 1), _LONGEST_BACKOFF_S)
        return max(map(ended_at, failures)) + delay - self._now

    def _write(self) -> None:
        present = self._job.get("status", {})
        indexed = is_indexed(self._job)
        per_index = self._job["spec"].get("backoffLimitPerIndex") is not None
        wanted: Json = {
            "conditions": self._conditions.entries or None,
            "active": len(self._active) or None,
            "ready": sum(map(is_ready, self._active)),
            "terminating": len(self._terminating),
            "succeeded": self._succeeded or None,
            "failed": self._failed or None,
            "startTime": self._start_time,
            "completionTime": self._completion_time,
            "completedIndexes": (format_indexes(self._completed) or None) if indexed else None,
            "failedIndexes": format_indexes(self._lost) if per_index else None,
            "uncountedTerminatedPods": {},
        }
        if any(present.get(name) != value for name, value in wanted.items()):
            metadata = self._job["metadata"]
            self._store.patch(JOBS, metadata["namespace"], metadata["name"], {"status": wanted}, subresource="status")
