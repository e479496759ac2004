"""`trial.hints`: the hints of a trial to an elastic scheduler, which gives it more or fewer replicas then.

AdaptDL is one: its service takes the hints of a job by HTTP. Everywhere else they have no effect. Nothing raises into
the training.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping

from jupyter_autotrain.agent.ranks.reporter import print_to_stderr

_URL = "ADAPTDL_SUPERVISOR_URL"
_JOB = "ADAPTDL_JOB_ID"
_REPLICAS = "ADAPTDL_NUM_REPLICAS"
PROFILED_VARIABLE = "AUTOTRAIN_PROFILED_REPLICAS"  # with how many at most the trial has run so far
_TIMEOUT_S = 5.0
_PAUSE_S = 5.0  # between two sendings of hints that change all the time
PERFORMANCE = ("alpha_c", "beta_c", "alpha_n", "beta_n", "alpha_r", "beta_r", "gamma")


class SchedulerHints:
    """The sender of a trial's hints, which include those of earlier calls.

    Args:
        note: Tells the user of trouble: level, text.
        environ: The trial's variables.
        rank: That of the worker; the hints of rank 0 count.
    """

    def __init__(
        self, note: Callable[[str, str], None], environ: Mapping[str, str] = os.environ, rank: int = 0
    ) -> None:
        self._note = note
        self._url = environ.get(_URL, "").rstrip("/") if rank == 0 else ""
        self._job = environ.get(_JOB, "")
        replicas = environ.get(PROFILED_VARIABLE) or environ.get(_REPLICAS, "")
        self._replicas = int(replicas) if replicas.isdigit() else 1
        self._known: dict[str, object] = {}
        self._sent: dict[str, object] = {}
        self._next_s = 0.0
        self._is_noted = False

    def __call__(  # noqa: PLR0913 - the hints that the scheduler knows, all by name
        self,
        *,
        batch_size: int | None = None,
        max_batch_size: int | None = None,
        replica_batch_size: tuple[int, int] | None = None,
        gradient_accumulation: bool | None = None,
        gradient: tuple[float, float] | None = None,
        performance: Mapping[str, float] | None = None,
        profiled_replicas: int | None = None,
    ) -> None:
        """Tell the scheduler how the training can use replicas; see `trial.hints` of `%autotrain help trial`.

        Args:
            batch_size: The size of a batch over all replicas, as the training began with it.
            max_batch_size: The greatest that the training can use.
            replica_batch_size: The least and the greatest batch of one replica.
            gradient_accumulation: Whether a batch may be computed in several parts.
            gradient: The squared norm of the mean gradient, and the variance of the gradients.
            performance: AdaptDL's parameters of the step time, by the names in `PERFORMANCE`.
            profiled_replicas: With how many replicas the training was measured; else with how many it has run. The
                scheduler gives at most twice as many.
        """
        given: dict[str, object] = {
            "initBatchSize": batch_size,
            "globalBatchSize": batch_size,
            "maxBatchSize": max_batch_size,
            "localBszBounds": None if replica_batch_size is None else list(replica_batch_size),
            "gradientAccumulation": gradient_accumulation,
            "gradParams": None if gradient is None else {"norm": gradient[0], "var": gradient[1]},
            "perfParams": None if performance is None else self._performance(performance),
            "maxProfiledReplicas": profiled_replicas or self._replicas,
        }
        self._known.update({name: value for name, value in given.items() if value is not None})
        if self._url and self._known != self._sent and time.monotonic() >= self._next_s:
            self._send()

    def _performance(self, told: Mapping[str, float]) -> dict[str, float] | None:
        missing = [name for name in PERFORMANCE if name not in told]
        if missing:
            self._say(f"hints(performance=...) lacks {', '.join(missing)}; it was not sent")
            return None
        return {name: float(told[name]) for name in PERFORMANCE}

    def _send(self) -> None:
        import urllib.request  # noqa: PLC0415 - only elastic trials pay

        self._next_s = time.monotonic() + _PAUSE_S
        try:
            request = urllib.request.Request(  # noqa: S310 - the scheduler's own address
                f"{self._url}/hints/{self._job}",
                data=json.dumps(self._known).encode(),
                headers={"Content-Type": "application/json"},
                method="PUT",
            )
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            opener.open(request, timeout=_TIMEOUT_S).close()
            self._sent = dict(self._known)
        except (OSError, ValueError, TypeError) as error:  # hints of a type that is no JSON, too
            self._say(f"hints() did not reach the scheduler: {error}; the training goes on as it is")

    def _say(self, text: str) -> None:
        """Tell the user once: the same would come with every call."""
        if not self._is_noted:
            self._is_noted = True
            self._note("warning", text)
            print_to_stderr(f"autotrain: {text}")
