"""Trials one after another in long jobs of a service with a shared folder: its *pilots*; see `agent.pool`.

```
pools/POOL/waiting/ENTRY    a trial that waits for a pilot
           pilots/PILOT     there from the start of a pilot until it was seen to have ended
           pilot.json       a trial of the pool, as which its pilots are made
jobs/PILOT/waiting/ENTRY    a trial that was given to a pilot, where the storage cannot rename; see `pools`
           taken-ENTRY      a trial that a pilot runs
jobs/NAME/pool              the pool of a trial
          begun/PILOT       once a pilot has begun it
```

A pool is that of one home and of what its jobs ask for, such as their image. All is kept in the storage, so any manager
goes on with it. A trial on several nodes is a job of its own: pilots have one node.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Final, cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue, to_json
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.backends.services.package import TrialPackage
from jupyter_autotrain.backends.services.pilots import PREFIX, Pilots, ref_of
from jupyter_autotrain.backends.services.pools import POOLS, Pool, begun_by, entry_of
from jupyter_autotrain.backends.services.service import AnswerLostError, Service, ServiceState
from jupyter_autotrain.backends.services.shared_folder import FolderService, SharedFolder, code_of
from jupyter_autotrain.core.backend import JobRef, Submission
from jupyter_autotrain.core.backend_check import CheckStep
from jupyter_autotrain.core.inventory import Inventory
from jupyter_autotrain.core.spec import Placement, TrialSpec
from jupyter_autotrain.errors import AutotrainError

POOLED: Final = "pooled"  # of the data of a job: it runs in a pilot
_POOL: Final = "pool"
_ENDS_S: Final = 20.0
_LOOK_AGAIN_S: Final = 0.1


class ReusingService(FolderService):
    """A service whose jobs run trials one after another; a trial on several nodes is left to the service itself.

    Args:
        service: The service.
        folder: Its shared folder.
        most: How many long jobs there may be.
        options: Of the profile: `reuse_idle` is how long each waits.
        pack: Packs a trial.
    """

    def __init__(
        self, service: Service, folder: SharedFolder, most: int, options: JsonObject,
        pack: Callable[[TrialSpec], TrialPackage],
    ) -> None:  # fmt: skip
        super().__init__(folder)
        self.capabilities = service.capabilities
        self.node_variables = service.node_variables
        self.keeps_whole_log = service.keeps_whole_log
        self.pause_s = service.pause_s
        self.settle_s = service.settle_s
        self._service = service
        self._pilots = Pilots(service, folder, most, options, pack)
        self._pools: dict[str, Pool] = {}  # by trial

    def check_steps(self) -> Iterator[CheckStep]:
        """Yield the steps before a trial can run there."""
        yield from self._service.check_steps()

    def discover(self) -> Inventory:
        """Return the nodes of the service."""
        return self._service.discover()

    def render(self, package: TrialPackage, placement: Placement) -> Submission:
        """Return the requests that start a long job, or the job of a trial on several nodes."""
        if package.nodes > 1:
            return self._service.render(package, placement)
        return self._service.render(self._pilots.package(self._pool_for(package), package, PREFIX), Placement())

    def submit(self, package: TrialPackage, placement: Placement, secrets: Mapping[str, str]) -> None:
        """Let the trial wait, and start a long job where one is missing."""
        if package.nodes > 1:
            self._service.submit(package, placement, secrets)
            return
        pool = self._pool_for(package)
        if not begun_by(self._folder.storage, package.name) and not pool.holder_of(package.name):
            self._add(pool, package, secrets)
        self._pilots.try_again(pool)
        try:
            self._pilots.keep(pool, self.settle_s)
        except AnswerLostError:
            raise
        except AutotrainError:
            if pool.withdraw(package.name):  # else a long job has it already
                self._folder.clear(package.name)
                raise

    def _add(self, pool: Pool, package: TrialPackage, secrets: Mapping[str, str]) -> None:
        self._folder.put(package, secrets)
        self._pilots.note_example(pool, package.trial)
        self._folder.storage.write(f"jobs/{package.name}/{_POOL}", pool.path.encode())
        pool.add(package.name, json.dumps({"code": code_of(package)}).encode())

    def _pool_for(self, package: TrialPackage) -> Pool:
        asked = cast("JsonValue", [package.options, package.image, to_json(package.trial.resources)])
        digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()
        return self._folder.pool(f"{package.home}-{digest[:12]}")

    def _pool_of(self, name: str) -> Pool | None:
        """Return the pool of a trial; None where the storage has nothing of it."""
        if name not in self._pools:
            noted = self._folder.storage.read(f"jobs/{name}/{_POOL}")
            if noted is None:
                return None
            self._pools[name] = self._folder.pool(noted.decode().rpartition("/")[2])
        return self._pools[name]

    def states(self, refs: Sequence[JobRef]) -> Mapping[str, ServiceState]:
        """Return the states of trials, after a look at their pilots."""
        direct = [ref for ref in refs if not ref.data.get(POOLED)]
        found = dict(self._service.states(direct)) if direct else {}
        kept: dict[str, Mapping[str, ServiceState]] = {}  # by pool
        for ref in refs:
            name = str(ref.data["name"])
            pool = self._pool_of(name) if ref.data.get(POOLED) else None
            if pool is None:
                continue
            if pool.path not in kept:
                kept[pool.path] = self._pilots.keep(pool, self.settle_s)
            found[name] = self._state(name, pool, kept[pool.path])
        return found

    def _state(self, name: str, pool: Pool, pilots: Mapping[str, ServiceState]) -> ServiceState:
        fatal = self._pilots.fatal_end(pool)
        if begun := self._begun(name, pilots):
            return begun
        if fatal is not None and pool.withdraw(name):
            return fatal
        if entry_of(name) in pool.waiting():
            told = [state.reason for state in pilots.values() if state.state is TrialState.PREPARING and state.reason]
            return ServiceState(TrialState.PREPARING, told[0] if told else "waits for its turn in a long job")
        if pool.holder_of(name):
            return ServiceState(TrialState.PREPARING, "is being begun by a long job")
        withdrawn = ServiceState(TrialState.CANCELLED, "It was withdrawn before it began.")
        return self._begun(name, pilots) or withdrawn  # it may have run to its end meanwhile

    def _begun(self, name: str, pilots: Mapping[str, ServiceState]) -> ServiceState | None:
        """Return the state of a trial that a pilot has begun; None where none has."""
        pilot = begun_by(self._folder.storage, name)
        if not pilot:
            return None
        state = pilots.get(pilot) or self._pilots.end_of(pilot)
        where: JsonObject = {"pilot": pilot}
        if not state.state.is_final:
            return ServiceState(TrialState.RUNNING, "", where)
        return ServiceState(state.state, f"Its long job ended: {state.reason or 'it had no more trials'}", where)

    def log(self, ref: JobRef, state: ServiceState, lines: int | None, node: int) -> str:
        """Return the log, from the storage or from that of its pilot."""
        name = str(ref.data["name"])
        pool = self._pool_of(name) if ref.data.get(POOLED) else None
        if pool is None:
            return self._service.log(ref, state, lines, node)
        if pool.has_own_logs:
            return self._folder.log(ref, lines, node)
        pilot = str((state.where or {}).get("pilot") or "")
        return self._service.log(ref_of(pilot, name), state, lines, node) if pilot else ""

    def ask(self, ref: JobRef, state: ServiceState, request: JsonObject, node: int) -> JsonValue:
        """Ask in the folder."""
        if not ref.data.get(POOLED):
            return self._service.ask(ref, state, request, node)
        return super().ask(ref, state, request, node)

    def release(self, ref: JobRef, *, waits: bool) -> None:
        """Remove the folder of the trial."""
        self._pools.pop(str(ref.data["name"]), None)
        self._service.release(ref, waits=waits)
        super().release(ref, waits=waits)

    def stop(self, ref: JobRef, state: ServiceState) -> str:
        """Withdraw a trial; one that does not end by itself is ended with its long job."""
        return super().stop(ref, state) if ref.data.get(POOLED) else self._service.stop(ref, state)

    def _end(self, ref: JobRef, state: ServiceState) -> None:
        name = str(ref.data["name"])
        pool = self._pool_of(name)
        if pool is None or pool.withdraw(name):
            return
        pilot = str((state.where or {}).get("pilot") or "")
        end_s = time.monotonic() + _ENDS_S
        while pilot and entry_of(name) in pool.taken_by(pilot):
            if time.monotonic() > end_s:
                self._pilots.stop(pilot)
                return
            time.sleep(_LOOK_AGAIN_S)

    def remove_experiments(self, home: str, experiments: Collection[str]) -> None:
        """Remove what the folder has of these experiments, and of pools of the home whose pilots have ended."""
        super().remove_experiments(home, experiments)
        storage = self._folder.storage
        for name in storage.names(POOLS):
            pool = self._folder.pool(name)
            if name.startswith(f"{home}-"):
                with suppress(AutotrainError):
                    self._pilots.keep(pool, self.settle_s)
                if not pool.pilots() and not pool.waiting():
                    storage.remove_folder(pool.path)
