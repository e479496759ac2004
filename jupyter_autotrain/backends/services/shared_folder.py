"""A folder of a service's storage that its jobs have mounted: packages, and requests to running trials.

```
packages/DIGEST/    the files that trials of an experiment share
jobs/NAME/          of one trial: `trial.json`, secrets until it begins, `requests`, `answers`
```
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping
from typing import Final, Protocol, cast

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.objects import agent_archive
from jupyter_autotrain.agent.pods import places, service_job
from jupyter_autotrain.backends.services.package import TrialPackage, new_name
from jupyter_autotrain.core.backend_check import CheckStep, StepTimer
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

ROOT: Final = "jupyter-autotrain"
_ANSWER_S = 60.0


class FolderStorage(Protocol):
    """The folder, as this machine reaches it: paths are relative to it.

    Every method raises `OSError` where a mount fails, and `BackendError` where a service refuses.
    """

    look_again_s: float  # between two looks for an answer

    def check(self, timer: StepTimer) -> CheckStep:
        """Return the step that says whether this machine can write there; raise nothing."""
        ...

    def has(self, path: str) -> bool:
        """Return whether there is a file, or a folder that was written."""
        ...

    def write(self, path: str, content: bytes) -> None:
        """Write a file, wholly or not at all; its folder is there, or need not be."""
        ...

    def write_folder(self, path: str, content: Mapping[str, bytes]) -> None:
        """Write a folder of files, wholly or not at all; one that is there already is the same."""
        ...

    def make_folder(self, path: str) -> None:
        """Make a folder that jobs can write into."""
        ...

    def take(self, path: str) -> bytes | None:
        """Return a file and remove it; None where there is none."""
        ...

    def remove_folder(self, path: str) -> None:
        """Remove a folder and all below it; one that is gone is passed over."""
        ...


class SharedFolder:
    """A folder that jobs and this machine share.

    Args:
        storage: The folder, as this machine reaches it.
        there: Its path in jobs.
    """

    def __init__(self, storage: FolderStorage, there: str) -> None:
        self.storage = storage
        self.there = there

    def command(self, package: TrialPackage, run: str) -> str:
        """Return the shell command that runs a trial, in the folder `run` of its job."""
        code = f"{self.there}/packages/{_digest(package.shared_files)}"
        shared = f"{self.there}/jobs/{package.name}"
        return f"exec {package.python} -I -S -u {code}/{agent_archive.NAME} {run} {shared}"

    def put(self, package: TrialPackage, values: Mapping[str, str]) -> None:
        """Have all that a trial needs in the folder.

        Raises:
            BackendUnavailableError: It cannot be written.
        """
        try:
            path = f"packages/{_digest(package.shared_files)}"
            if not self.storage.has(path):
                self.storage.write_folder(path, package.shared_files)
            self._put_own(package, values)
        except OSError as error:
            raise BackendUnavailableError(
                f"{error.filename or 'The storage'} cannot be written: {error.strerror}.", "", "Look at the mount."
            ) from error

    def _put_own(self, package: TrialPackage, values: Mapping[str, str]) -> None:
        job = f"jobs/{package.name}"
        for folder in (service_job.REQUESTS, service_job.ANSWERS):
            self.storage.make_folder(f"{job}/{folder}")
        self.storage.write(f"{job}/{places.TRIAL_FILE}", package.trial_text.encode())
        if secret := package.secret_file(values):
            self.storage.write(f"{job}/{service_job.SECRETS_FILE}", secret)

    def ask(self, name: str, request: JsonObject) -> JsonValue:
        """Have a running trial answer a request.

        Raises:
            BackendUnavailableError: It does not within a minute.
            BackendError: It cannot do that.
        """
        job = f"jobs/{name}"
        name_of_file = f"{new_name('request')}.json"
        self._check_running(job)
        self.storage.write(f"{job}/{service_job.REQUESTS}/{name_of_file}", json.dumps(request).encode())
        end_s = time.monotonic() + _ANSWER_S
        while (answer := self.storage.take(f"{job}/{service_job.ANSWERS}/{name_of_file}")) is None:
            if time.monotonic() > end_s:
                raise BackendUnavailableError(f"The trial does not answer in {job} within {_ANSWER_S:g} s.")
            time.sleep(self.storage.look_again_s)
            self._check_running(job)  # another follower may have collected all, and removed the folder
        found = cast("JsonObject", json.loads(answer))
        if "failure" in found:
            raise BackendError(*cast("list[str]", found["failure"]))
        return found["ok"]

    def _check_running(self, job: str) -> None:
        if not self.storage.has(f"{job}/{places.TRIAL_FILE}"):
            raise BackendError(f"There is no running trial with the folder {job}.")

    def clear(self, name: str) -> None:
        """Remove the folder of a trial that is collected; by that its job knows it."""
        self.storage.remove_folder(f"jobs/{name}")


def _digest(content: Mapping[str, bytes]) -> str:
    total = hashlib.sha256()
    for name in sorted(content):
        total.update(name.encode() + b"\0" + hashlib.sha256(content[name]).digest())
    return total.hexdigest()[:40]
