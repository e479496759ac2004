"""The pilots of pools: starts those that are missing, and settles the ends of the others; see `reuse`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final, cast

from jupyter_autotrain.agent.json import JsonObject, from_json, to_json
from jupyter_autotrain.agent.pods import places, service_job
from jupyter_autotrain.agent.pool import rules
from jupyter_autotrain.agent.pool.pilot import PILOTS
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.services.package import TrialPackage, new_name
from jupyter_autotrain.backends.services.pools import Pool
from jupyter_autotrain.backends.services.service import AnswerLostError, Service, ServiceState
from jupyter_autotrain.backends.services.shared_folder import SharedFolder
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.errors import AutotrainError

REUSE_IDLE_S: Final = 60.0
PREFIX: Final = "autotrain-pilot"
GONE: Final = ServiceState(TrialState.LOST, "the service does not know it any more")
_EXAMPLE: Final = "pilot.json"


def ref_of(pilot: str, trial: str = "") -> JobRef:
    """Return how a service finds a pilot, or what its log says of one of its trials."""
    return JobRef("", pilot, {"name": pilot, "trial": trial})


class Pilots:
    """The pilots of a profile.

    Args:
        service: Where their jobs are.
        folder: Its shared folder.
        most: How many there may be in a pool.
        options: Of the profile.
        pack: Packs a trial.
    """

    def __init__(
        self, service: Service, folder: SharedFolder, most: int, options: JsonObject,
        pack: Callable[[TrialSpec], TrialPackage],
    ) -> None:  # fmt: skip
        self._service = service
        self._folder = folder
        self._most = most
        self._idle_s = options.get("reuse_idle") or REUSE_IDLE_S
        self._pack = pack
        self._unknown_since_s: dict[str, float] = {}  # by pilot
        self._ended: dict[str, ServiceState] = {}  # by pilot
        self._failed: dict[str, list[ServiceState]] = {}  # by pool: the ends of its pilots, since one has gone well

    def fatal_end(self, pool: Pool) -> ServiceState | None:
        """Return the end with which trials that wait fail, too; None where another pilot may run them."""
        return rules.fatal_end(self._failed.get(pool.path, ()))

    def try_again(self, pool: Pool) -> None:
        """Forget those that have failed."""
        self._failed.pop(pool.path, None)

    def end_of(self, pilot: str) -> ServiceState:
        """Return how a pilot has ended that is not there any more."""
        return self._ended.get(pilot, GONE)

    def note_example(self, pool: Pool, trial: TrialSpec) -> None:
        """Note a trial of a pool, as which its pilots are made."""
        self._folder.storage.make_folder(f"{pool.path}/{PILOTS}")
        self._folder.storage.write(f"{pool.path}/{_EXAMPLE}", json.dumps(to_json(trial)).encode())

    def package(self, pool: Pool, package: TrialPackage, name: str) -> TrialPackage:
        """Return the package of a pilot, which is that of a trial but for its name and variables."""
        given = cast("JsonObject", json.loads(package.variables[places.POD_VARIABLE]))
        own: JsonObject = {
            places.REUSE_IDLE: self._idle_s, service_job.POOL: pool.source_of(name),
            service_job.OWN_LOGS: pool.has_own_logs, "lingers": False,
        }  # fmt: skip
        text = json.dumps({**given, **own}, sort_keys=True)
        variables = {**package.variables, places.POD_VARIABLE: text}
        return replace(package, name=name, variables=variables, is_pilot=True)

    def keep(self, pool: Pool, settle_s: float) -> Mapping[str, ServiceState]:
        """Settle the ends of pilots, and start those that are missing; return the states of those that there were.

        Args:
            pool: Of which.
            settle_s: How long the service may not know one before it is lost.
        """
        with pool.alone() as is_alone:
            states = self._states(pool, settle_s)
            if not is_alone:
                return states
            for pilot, state in states.items():
                if state.state.is_final:
                    self._settle(pool, pilot, state)
            living = [pilot for pilot, state in states.items() if not state.state.is_final]
            ready = [pilot for pilot in living if not pool.held_by(pilot)]
            running = [pilot for pilot in ready if states[pilot].state is TrialState.RUNNING]
            pool.share_out(running)
            if self.fatal_end(pool) is None:
                ready = [pilot for pilot in ready if not pool.held_by(pilot)]
                for _ in range(rules.missing_pilots(len(pool.waiting()), len(ready), len(living), self._most)):
                    self._start(pool)
        return states

    def _states(self, pool: Pool, settle_s: float) -> dict[str, ServiceState]:
        """Return the states of the pilots of a pool; the service may not know yet one that was just started."""
        names = pool.pilots()
        states = self._service.states([ref_of(name) for name in names]) if names else {}
        found = {}
        for name in names:
            since_s = self._unknown_since_s.setdefault(name, time.monotonic())
            is_new = time.monotonic() - since_s < settle_s
            found[name] = states.get(name) or (ServiceState(TrialState.PREPARING) if is_new else GONE)
            if name in states:
                self._unknown_since_s.pop(name, None)
        return found

    def _settle(self, pool: Pool, pilot: str, state: ServiceState) -> None:
        if state.state is TrialState.PREEMPTED:
            self._service.stop(ref_of(pilot), state)  # else the service begins it again some day
        failed = self._failed.setdefault(pool.path, [])
        if state.state is TrialState.FAILED:
            failed.append(state)
        elif state.state is TrialState.SUCCEEDED:
            failed.clear()
        self._ended[pilot] = state
        pool.settle(pilot)

    def _start(self, pool: Pool) -> None:
        """Start a pilot; its mark comes first, by which it is found where the answer is lost."""
        storage = self._folder.storage
        example = storage.read(f"{pool.path}/{_EXAMPLE}")
        trial = from_json(TrialSpec, cast("JsonObject", json.loads(example or b"{}")))
        name = new_name(PREFIX)
        storage.write(f"{pool.path}/{PILOTS}/{name}", b"")
        storage.make_folder(f"jobs/{name}")
        try:
            self._service.submit(self.package(pool, self._pack(trial), name), Placement(), {})
        except AnswerLostError:
            raise
        except AutotrainError:
            pool.forget(name)
            raise

    def stop(self, pilot: str) -> None:
        """End a pilot, and so the trial that it runs."""
        self._service.stop(ref_of(pilot), self._service.states([ref_of(pilot)]).get(pilot, GONE))
