"""A folder of a service's storage that this machine has mounted: packages, and requests to running trials.

```
jupyter-autotrain/packages/DIGEST/    the files that trials of an experiment share
                  jobs/NAME/          of one trial: `trial.json`, secrets until it begins, `requests`, `answers`
```
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from jupyter_autotrain.agent import files, wire
from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.objects import agent_archive
from jupyter_autotrain.agent.pods import places, service_job
from jupyter_autotrain.backends.services.package import TrialPackage, new_name
from jupyter_autotrain.core.backend_check import CheckStep, StepTimer
from jupyter_autotrain.errors import BackendError, BackendUnavailableError

_ROOT = "jupyter-autotrain"
_ANSWER_S = 60.0
_LOOK_AGAIN_S = 0.05


class SharedFolder:
    """A folder that jobs see under another path.

    Args:
        here: Its path on this machine.
        there: Its path in jobs.
    """

    def __init__(self, here: str, there: str) -> None:
        self._here = Path(here).expanduser()
        self._there = there.rstrip("/")

    def check(self, timer: StepTimer) -> CheckStep:
        """Return the step that says whether this machine can write there."""
        timer.begin("storage")
        if not os.access(self._here, os.W_OK):
            return timer.failed(
                f"{self._here} is not there, or cannot be written",
                f"Mount the storage there, which jobs see as {self._there}, or correct `local_path:` of the profile.",
            )
        return timer.done(f"{self._here} is what jobs see as {self._there}")

    def command(self, package: TrialPackage, run: str) -> str:
        """Return the shell command that runs a trial, in the folder `run` of its job."""
        code = f"{self._there}/{_ROOT}/packages/{_digest(package.shared_files)}"
        shared = f"{self._there}/{_ROOT}/jobs/{package.name}"
        return f"exec {package.python} -I -S -u {code}/{agent_archive.NAME} {run} {shared}"

    def put(self, package: TrialPackage, values: Mapping[str, str]) -> None:
        """Have all that a trial needs in the folder.

        Raises:
            BackendUnavailableError: It cannot be written.
        """
        try:
            self._put_shared(package.shared_files)
            self._put_own(package, values)
        except OSError as error:
            raise BackendUnavailableError(
                f"{error.filename or self._here} cannot be written: {error.strerror}.", "", "Look at the mount."
            ) from error

    def _put_shared(self, content: Mapping[str, bytes]) -> None:
        folder = self._here / _ROOT / "packages"
        target = folder / _digest(content)
        if target.is_dir():
            return
        draft = folder / new_name(".draft")
        files.make_directories(draft)
        for name, data in content.items():
            wire.write_atomically(str(draft / name), data)
        try:
            draft.rename(target)
        except OSError:  # another process was first
            shutil.rmtree(draft)
            if not target.is_dir():
                raise

    def _put_own(self, package: TrialPackage, values: Mapping[str, str]) -> None:
        job = self._job(package.name)
        for folder in (service_job.REQUESTS, service_job.ANSWERS):
            files.make_directories(job / folder)
        wire.write_atomically(str(job / places.TRIAL_FILE), package.trial_text.encode())
        if secret := package.secret_file(values):
            wire.write_atomically(str(job / service_job.SECRETS_FILE), secret)

    def _job(self, name: str) -> Path:
        return self._here / _ROOT / "jobs" / name

    def ask(self, name: str, request: JsonObject) -> JsonValue:
        """Have a running trial answer a request.

        Raises:
            BackendUnavailableError: It does not within a minute.
            BackendError: It cannot do that.
        """
        job = self._job(name)
        name_of_file = f"{new_name('request')}.json"
        answer = job / service_job.ANSWERS / name_of_file
        if not job.is_dir():
            raise BackendError(f"There is no running trial with the folder {job}.")
        wire.write_atomically(str(job / service_job.REQUESTS / name_of_file), json.dumps(request).encode(), sync=False)
        end_s = time.monotonic() + _ANSWER_S
        while not answer.exists():
            if time.monotonic() > end_s:
                raise BackendUnavailableError(f"The trial does not answer in {job} within {_ANSWER_S:g} s.")
            time.sleep(_LOOK_AGAIN_S)
        found = cast("JsonObject", json.loads(answer.read_bytes()))
        answer.unlink()
        if "failure" in found:
            raise BackendError(*cast("list[str]", found["failure"]))
        return found["ok"]

    def clear(self, name: str) -> None:
        """Remove the folder of a trial that is collected; by that its job knows it."""
        shutil.rmtree(self._job(name), ignore_errors=True)


def _digest(content: Mapping[str, bytes]) -> str:
    total = hashlib.sha256()
    for name in sorted(content):
        total.update(name.encode() + b"\0" + hashlib.sha256(content[name]).digest())
    return total.hexdigest()[:40]
