"""A folder of a service's storage that its jobs have mounted: packages, and requests to running trials.

```
packages/HOME/EXPERIMENT/DIGEST/    the files that trials of an experiment share
jobs/NAME/                          of one trial: `trial.json`, secrets until it begins, `requests`, `answers`
jobs/NAME/node-N/                   `requests` and `answers` of one of several nodes
```
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from typing import Final, Protocol, cast, runtime_checkable

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.objects import agent_archive
from jupyter_autotrain.agent.pods import places, service_job
from jupyter_autotrain.backends.services import http_client
from jupyter_autotrain.backends.services.folder_storage import FolderStorage
from jupyter_autotrain.backends.services.package import TrialPackage, experiment_of, new_name
from jupyter_autotrain.backends.services.pools import GivenTrials, Pool
from jupyter_autotrain.backends.services.service import ServiceState, nodes_of
from jupyter_autotrain.core.backend import JobRef
from jupyter_autotrain.core.backend_check import CheckStep, StepTimer
from jupyter_autotrain.errors import AutotrainError, BackendError, BackendUnavailableError

ROOT: Final = "jupyter-autotrain"
_PACKAGES = "packages"
_ANSWER_S = 60.0


class SharedFolder:
    """A folder that jobs and this machine share.

    Args:
        storage: The folder, as this machine reaches it.
        there: Its path in jobs.
    """

    def __init__(self, storage: FolderStorage, there: str) -> None:
        self.storage = storage
        self.there = there
        self._alone = threading.Lock()

    def pool(self, name: str) -> Pool:
        """Return the pool of a name; its trials are given to pilots, as a blob store cannot rename."""
        return GivenTrials(self.storage, name, self._alone)

    def log(self, ref: JobRef, lines: int | None, node: int) -> str:  # noqa: ARG002 - as below
        """Return nothing: jobs do not write their logs there."""
        return ""

    def command(self, package: TrialPackage, run: str) -> str:
        """Return the shell command that runs a trial, in the folder `run` of its job."""
        code = f"{self.there}/{code_of(package)}"
        shared = f"{self.there}/jobs/{package.name}"
        return f"exec {package.python} -I -S -u {code}/{agent_archive.NAME} {run} {shared}"

    def put(self, package: TrialPackage, values: Mapping[str, str]) -> None:
        """Have all that a trial needs in the folder.

        Raises:
            BackendUnavailableError: It cannot be written.
        """
        try:
            path = code_of(package)
            if not self.storage.has(path):
                self.storage.write_folder(path, package.shared_files)
            self._put_own(package, values)
        except OSError as error:
            raise BackendUnavailableError(
                f"{error.filename or 'The storage'} cannot be written: {error.strerror}.", "", "Look at the mount."
            ) from error

    def _put_own(self, package: TrialPackage, values: Mapping[str, str]) -> None:
        job = f"jobs/{package.name}"
        for node in range(package.nodes):
            for folder in (service_job.REQUESTS, service_job.ANSWERS):
                self.storage.make_folder(f"{_own(package.name, node, package.nodes)}/{folder}")
        for name, secret in package.secret_files(values).items():
            self.storage.write(f"{job}/{name}", secret)
        self.storage.write(f"{job}/{places.TRIAL_FILE}", package.trial_text.encode())

    def ask(self, ref: JobRef, request: JsonObject, node: int) -> JsonValue:
        """Have a running node of a trial answer a request.

        Raises:
            BackendUnavailableError: It does not within a minute.
            BackendError: It cannot do that.
        """
        job = f"jobs/{ref.data['name']}"
        own = self.own(ref, node)
        name_of_file = f"{new_name('request')}.json"
        self._check_running(job)
        self.storage.write(f"{own}/{service_job.REQUESTS}/{name_of_file}", json.dumps(request).encode())
        end_s = time.monotonic() + _ANSWER_S
        while (answer := self.storage.take(f"{own}/{service_job.ANSWERS}/{name_of_file}")) is None:
            if time.monotonic() > end_s:
                raise BackendUnavailableError(f"The trial does not answer in {own} within {_ANSWER_S:g} s.")
            time.sleep(self.storage.look_again_s)
            self._check_running(job)  # another follower may have collected all, and removed the folder
        found = cast("JsonObject", json.loads(answer))
        if "failure" in found:
            raise BackendError(*cast("list[str]", found["failure"]))
        return found["ok"]

    def own(self, ref: JobRef, node: int) -> str:
        """Return the path of the folder of a node of a trial."""
        return _own(str(ref.data["name"]), node, nodes_of(ref))

    def _check_running(self, job: str) -> None:
        if not self.storage.has(f"{job}/{places.TRIAL_FILE}"):
            raise BackendError(f"There is no running trial with the folder {job}.")

    def clear(self, name: str) -> None:
        """Remove the folder of a trial that is collected; by that its job knows it."""
        self.storage.remove_folder(f"jobs/{name}")

    def experiments(self, home: str) -> Mapping[str, int]:
        """Return the experiments of a home that have something here, with the bytes of each."""
        found: Counter[str] = Counter()
        for path, size_bytes in self.storage.sizes(f"{_PACKAGES}/{home}").items():
            found[path.partition("/")[0]] += size_bytes
        for path, size_bytes in self.storage.sizes("jobs").items():
            if experiment := experiment_of(home, path.partition("/")[0]):
                found[experiment] += size_bytes
        return found

    def remove(self, home: str, experiments: Collection[str]) -> None:
        """Remove what is here of experiments of a home.

        Raises:
            BackendError: Some of it is still there afterwards.
        """
        for path in [*self._folders_of(home, experiments)]:
            self.storage.remove_folder(path)
            if left := sorted(self.storage.sizes(path)):
                raise BackendError(
                    f"{len(left)} files of {path} are still in the storage, such as {left[0]}.",
                    "All of them are removed with their experiment.", "See who may write there.",
                )  # fmt: skip

    def _folders_of(self, home: str, experiments: Collection[str]) -> Iterator[str]:
        yield from (f"{_PACKAGES}/{home}/{experiment}" for experiment in experiments)
        names = {path.partition("/")[0] for path in self.storage.sizes("jobs")}
        yield from (f"jobs/{name}" for name in sorted(names) if experiment_of(home, name) in experiments)


@runtime_checkable
class SharesFolder(Protocol):
    """A service whose jobs can run trials one after another."""

    @property
    def shared_folder(self) -> SharedFolder | None:
        """The folder that they share with this machine."""
        ...


class FolderService:
    """The part of a service that is the same for all with a shared folder.

    Args:
        folder: The folder.
    """

    def __init__(self, folder: SharedFolder) -> None:
        self._folder = folder

    @property
    def shared_folder(self) -> SharedFolder | None:
        """The folder."""
        return self._folder

    def check_steps(self) -> Iterator[CheckStep]:
        """Yield the steps before a trial can run there, that of the folder last."""
        timer = StepTimer("")
        try:
            for step in self._steps(timer):
                yield step
                if not step.is_good:
                    return
        except AutotrainError as error:
            yield timer.refused(error)
            return
        yield self._folder.storage.check(timer)

    def _steps(self, timer: StepTimer) -> Iterator[CheckStep]:
        """Yield the steps of the service itself, up to the first that fails; errors are those of the step begun."""
        raise NotImplementedError

    def ask(self, ref: JobRef, state: ServiceState, request: JsonObject, node: int) -> JsonValue:  # noqa: ARG002 - by its name
        """Ask in the folder."""
        return self._folder.ask(ref, request, node)

    def release(self, ref: JobRef, *, waits: bool) -> None:  # noqa: ARG002 - that is how it knows
        """Remove the folder of the trial."""
        self._folder.clear(str(ref.data["name"]))

    def experiments_there(self, home: str) -> Mapping[str, int]:
        """Return the experiments of a home that the folder has something of, with the bytes of each."""
        return self._folder.experiments(home)

    def remove_experiments(self, home: str, experiments: Collection[str]) -> None:
        """Remove what the folder has of these experiments of a home."""
        self._folder.remove(home, experiments)

    def stop(self, ref: JobRef, state: ServiceState) -> str:
        """Have the service end a job."""
        with http_client.unless_gone():
            self._end(ref, state)
        return ""

    def _end(self, ref: JobRef, state: ServiceState) -> None:
        """Ask the service to end a job."""
        raise NotImplementedError


def _own(name: str, node: int, nodes: int) -> str:
    """Return the folder of a node of a trial."""
    end = service_job.of_node(node, nodes)
    return f"jobs/{name}/node{end}" if end else f"jobs/{name}"


def code_of(package: TrialPackage) -> str:
    """Return the folder of what trials of an experiment share."""
    total = hashlib.sha256()
    for name, content in sorted(package.shared_files.items()):
        total.update(name.encode() + b"\0" + hashlib.sha256(content).digest())
    return f"{_PACKAGES}/{package.home}/{package.trial.experiment_id}/{total.hexdigest()[:40]}"
