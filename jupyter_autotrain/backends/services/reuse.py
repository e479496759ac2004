"""Trials one after another in long jobs of a service with a mounted storage: its *pilots*; see `agent.pool`.

```
pools/POOL/waiting/NAME     a trial that waits for a pilot
           pilots/PILOT     there from the start of a pilot until it was seen to have ended
           pilot.json       a trial of the pool, as which its pilots are made
jobs/PILOT/taken-NAME       a trial that a pilot runs
jobs/NAME/pool              the pool of a trial
          begun/PILOT       once a pilot has begun it
```

A pool is that of one home and of what its jobs ask for, such as their image. All is kept in the storage, so any manager
goes on with it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final, cast

from jupyter_autotrain.agent import files
from jupyter_autotrain.agent.json import JsonObject, JsonValue, from_json, to_json
from jupyter_autotrain.agent.pods import places, service_job
from jupyter_autotrain.agent.pool import rules
from jupyter_autotrain.agent.pool.pilot import PILOTS
from jupyter_autotrain.agent.pool.waiting import TAKEN, WaitingTrials
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.services.mounted_folder import MountedFolder
from jupyter_autotrain.backends.services.package import TrialPackage, new_name
from jupyter_autotrain.backends.services.service import AnswerLostError, Service, ServiceState
from jupyter_autotrain.backends.services.shared_folder import FolderService, code_of
from jupyter_autotrain.core.backend import JobRef, Submission
from jupyter_autotrain.core.backend_check import CheckStep
from jupyter_autotrain.core.inventory import Inventory
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.errors import AutotrainError

REUSE_IDLE_S: Final = 60.0
_PREFIX: Final = "autotrain-pilot"
_EXAMPLE: Final = "pilot.json"
_POOL: Final = "pool"
_ENDS_S: Final = 20.0
_LOOK_AGAIN_S: Final = 0.1
_GONE: Final = ServiceState(TrialState.LOST, "the service does not know it any more")


class ReusingService(FolderService):
    """A service whose jobs run trials one after another.

    Args:
        service: The service.
        folder: Its shared folder.
        options: Of the profile: `reuse` is how many long jobs there may be, `reuse_idle` how long each waits.
        pack: Packs a trial.
    """

    keeps_whole_log = True
    _folder: MountedFolder

    def __init__(
        self, service: Service, folder: MountedFolder, options: JsonObject, pack: Callable[[TrialSpec], TrialPackage]
    ) -> None:
        super().__init__(folder)
        self.capabilities = replace(service.capabilities, multi_node=False)
        self.node_variables = service.node_variables
        self.pause_s = service.pause_s
        self.settle_s = service.settle_s
        self._service = service
        self._here = folder.mounted.path
        self._most = int(cast("int", options.get("reuse") or 1))
        self._idle_s = options.get("reuse_idle") or REUSE_IDLE_S
        self._pack = pack
        self._unknown_since_s: dict[str, float] = {}  # by pilot
        self._ended: dict[str, ServiceState] = {}  # by pilot
        self._failed: dict[str, list[ServiceState]] = {}  # by pool: the ends of its pilots, since one has gone well

    def check_steps(self) -> Iterator[CheckStep]:
        """Yield the steps before a trial can run there."""
        return self._service.check_steps()

    def discover(self) -> Inventory:
        """Return the nodes of the service."""
        return self._service.discover()

    def render(self, package: TrialPackage, placement: Placement) -> Submission:
        """Return the requests that start a long job."""
        return self._service.render(self._pilot(package, _PREFIX), placement)

    def submit(self, package: TrialPackage, placement: Placement, secrets: Mapping[str, str]) -> None:  # noqa: ARG002 - as the service
        """Let the trial wait, and start a long job where one is missing."""
        pool = self._pool_of(package)
        pilots = self._names(f"pools/{pool}/{PILOTS}")
        if not self._begun_by(package.name) and not any(self._has_taken(pilot, package.name) for pilot in pilots):
            self._folder.put(package, secrets)
            self._folder.storage.make_folder(f"pools/{pool}/{PILOTS}")
            self._folder.storage.write(f"pools/{pool}/{_EXAMPLE}", json.dumps(to_json(package.trial)).encode())
            self._folder.storage.write(f"jobs/{package.name}/{_POOL}", pool.encode())
            entry = json.dumps({"code": f"{self._folder.there}/{code_of(package)}"}).encode()
            waiting = self._waiting(pool)
            waiting.add(lambda: waiting.put(package.name, entry, sync=False))
        self._failed.pop(pool, None)
        try:
            self._keep(pool)
        except AnswerLostError:
            raise
        except AutotrainError:
            if self._waiting(pool).withdraw(package.name):  # else a long job has it already
                self._folder.clear(package.name)
                raise

    def _waiting(self, pool: str) -> WaitingTrials:
        return WaitingTrials(self._here / "pools" / pool)

    def _names(self, path: str) -> list[str]:
        with suppress(FileNotFoundError):
            return sorted(one.name for one in (self._here / path).iterdir() if not one.name.startswith("."))
        return []

    def _begun_by(self, name: str) -> str:
        """Return the pilot that has begun a trial; "" where none has."""
        return next(iter(self._names(f"jobs/{name}/{service_job.BEGUN}")), "")

    def _has_taken(self, pilot: str, name: str) -> bool:
        return self._folder.storage.has(f"jobs/{pilot}/{TAKEN}{name}")

    def _pool_of(self, package: TrialPackage) -> str:
        asked = cast("JsonValue", [package.options, package.image, to_json(package.trial.resources)])
        digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
        return f"{package.home}-{digest[:12]}"

    def _pilot(self, package: TrialPackage, name: str) -> TrialPackage:
        """Return the package of a pilot, which is that of a trial but for its name and variables."""
        given = cast("JsonObject", json.loads(package.variables[places.POD_VARIABLE]))
        pool = f"pools/{self._pool_of(package)}"
        text = json.dumps({**given, places.REUSE_IDLE: self._idle_s, service_job.POOL: pool}, sort_keys=True)
        return replace(package, name=name, variables={**package.variables, places.POD_VARIABLE: text})

    def states(self, refs: Sequence[JobRef]) -> Mapping[str, ServiceState]:
        """Return the states of trials, after a look at their pilots."""
        pools: dict[str, list[str]] = {}
        for ref in refs:
            name = str(ref.data["name"])
            noted = self._folder.mounted.read(f"jobs/{name}/{_POOL}", None)
            if noted is not None:
                pools.setdefault(noted.decode(), []).append(name)
        found: dict[str, ServiceState] = {}
        for pool, names in pools.items():
            pilots = self._keep(pool)
            for name in names:
                found[name] = self._state(name, pool, pilots)
        return found

    def _pilots(self, pool: str) -> dict[str, ServiceState]:
        """Return the states of the pilots of a pool; the service may not know yet one that was just started."""
        names = self._names(f"pools/{pool}/{PILOTS}")
        states = self._service.states([_ref(name) for name in names]) if names else {}
        found = {}
        for name in names:
            since_s = self._unknown_since_s.setdefault(name, time.monotonic())
            is_new = time.monotonic() - since_s < self.settle_s
            found[name] = states.get(name) or (ServiceState(TrialState.PREPARING) if is_new else _GONE)
            if name in states:
                self._unknown_since_s.pop(name, None)
        return found

    def _state(self, name: str, pool: str, pilots: Mapping[str, ServiceState]) -> ServiceState:
        if begun_by := self._begun_by(name):
            state = pilots.get(begun_by) or self._ended.get(begun_by) or _GONE
            where: JsonObject = {"pilot": begun_by}
            if not state.state.is_final:
                return ServiceState(TrialState.RUNNING, "", where)
            return ServiceState(state.state, f"Its long job ended: {state.reason or 'it had no more trials'}", where)
        waiting = self._waiting(pool)
        fatal = rules.fatal_end(self._failed.get(pool, ()))
        if fatal is not None and waiting.withdraw(name):
            return fatal
        if name in waiting.names():
            told = [state.reason for state in pilots.values() if state.state is TrialState.PREPARING and state.reason]
            return ServiceState(TrialState.PREPARING, told[0] if told else "waits for its turn in a long job")
        if any(self._has_taken(pilot, name) for pilot in pilots):
            return ServiceState(TrialState.PREPARING, "is being begun by a long job")
        return ServiceState(TrialState.CANCELLED, "It was withdrawn before it began.")

    def _keep(self, pool: str) -> Mapping[str, ServiceState]:
        """Settle the ends of pilots, and start those that are missing; return the states of those that there were."""
        with self._alone(pool) as is_alone:
            pilots = self._pilots(pool)
            if not is_alone:
                return pilots
            for pilot, state in pilots.items():
                if state.state.is_final:
                    self._settle(pool, pilot, state)
            living = [pilot for pilot, state in pilots.items() if not state.state.is_final]
            ready = [pilot for pilot in living if not self._names_taken(pilot)]
            waiting = self._waiting(pool).names()
            if rules.fatal_end(self._failed.get(pool, ())) is None:
                for _ in range(rules.missing_pilots(len(waiting), len(ready), len(living), self._most)):
                    self._start(pool)
        return pilots

    @contextmanager
    def _alone(self, pool: str) -> Iterator[bool]:
        folder = self._here / "pools" / pool
        files.make_directories(folder / PILOTS)
        fd = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            is_alone = False
            with suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                is_alone = True
            yield is_alone
        finally:
            os.close(fd)

    def _names_taken(self, pilot: str) -> list[str]:
        return [name.removeprefix(TAKEN) for name in self._names(f"jobs/{pilot}") if name.startswith(TAKEN)]

    def _settle(self, pool: str, pilot: str, state: ServiceState) -> None:
        """Let the trials wait again that a pilot has not begun, and forget it."""
        waiting = self._waiting(pool)
        for name in self._names_taken(pilot):
            if not self._begun_by(name):
                waiting.open()
                (self._here / "jobs" / pilot / f"{TAKEN}{name}").rename(waiting.file(name))
        if state.state is TrialState.PREEMPTED:
            self._service.stop(_ref(pilot), state)  # else the service begins it again some day
        failed = self._failed.setdefault(pool, [])
        if state.state is TrialState.FAILED:
            failed.append(state)
        elif state.state is TrialState.SUCCEEDED:
            failed.clear()
        self._ended[pilot] = state
        self._forget(pool, pilot)

    def _forget(self, pool: str, pilot: str) -> None:
        self._folder.clear(pilot)
        (self._here / "pools" / pool / PILOTS / pilot).unlink(missing_ok=True)

    def _start(self, pool: str) -> None:
        """Start a pilot; its mark comes first, by which it is found where the answer is lost."""
        example = self._folder.mounted.read(f"pools/{pool}/{_EXAMPLE}", None)
        trial = from_json(TrialSpec, cast("JsonObject", json.loads(example or b"{}")))
        name = new_name(_PREFIX)
        self._folder.storage.write(f"pools/{pool}/{PILOTS}/{name}", b"")
        try:
            self._service.submit(self._pilot(self._pack(trial), name), Placement(), {})
        except AnswerLostError:
            raise
        except AutotrainError:
            self._forget(pool, name)
            raise

    def log(self, ref: JobRef, state: ServiceState, lines: int | None, node: int) -> str:  # noqa: ARG002 - by its name
        """Return the log, from the storage."""
        return self._folder.log(ref, lines, node)

    def _end(self, ref: JobRef, state: ServiceState) -> None:
        """Withdraw a trial; one that does not end by itself is ended with its long job."""
        name = str(ref.data["name"])
        pool = self._folder.mounted.read(f"jobs/{name}/{_POOL}", None) or b""
        if self._waiting(pool.decode()).withdraw(name):
            return
        pilot = str((state.where or {}).get("pilot") or "")
        end_s = time.monotonic() + _ENDS_S
        while pilot and self._has_taken(pilot, name):
            if time.monotonic() > end_s:
                self._service.stop(_ref(pilot), self._service.states([_ref(pilot)]).get(pilot, _GONE))
                return
            time.sleep(_LOOK_AGAIN_S)

    def remove_experiments(self, home: str, experiments: Collection[str]) -> None:
        """Remove what the folder has of these experiments, and of pools of the home whose pilots have ended."""
        super().remove_experiments(home, experiments)
        for pool in self._names("pools"):
            if pool.startswith(f"{home}-"):
                self._keep(pool)
                if not self._names(f"pools/{pool}/{PILOTS}") and not self._waiting(pool).names():
                    self._folder.storage.remove_folder(f"pools/{pool}")


def _ref(name: str) -> JobRef:
    return JobRef("", name, {"name": name})
