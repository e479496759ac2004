"""The program of a long-running pod: runs the trials it is given one after another, each as a pod of its own would.

```
RUN/next/       the next trial: its files, and `job` with its id; there as soon as it is whole
RUN/current/    the files of the trial that runs, or ran last; the rest of it lies where `pod` puts it
RUN/ran         the ids of all trials that were taken, one a line; who holds its lock takes one, or ends the pod
RUN/ended       there once no trial is taken any more
```

What trials share stays: the agent, data, virtual environments.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from typing import TextIO

from jupyter_autotrain.backends.kubernetes_pod import places
from jupyter_autotrain.backends.kubernetes_pod.pod import PREEMPTED_CODE, Pod
from jupyter_autotrain.worker import fields

NEXT = "next"
CURRENT = "current"
RAN = "ran"
ENDED = "ended"
_OF_ONE_TRIAL = (
    CURRENT, places.TRIAL, places.BUNDLE, places.RESUME, places.STATES, places.FILES, places.ACKNOWLEDGED
)  # fmt: skip
_PAUSE_S = 0.05


class Pilot:
    """One long-running pod.

    Args:
        environ: The variables of its container.
        idle_s: How long it waits for another trial before it ends.
        run: The folder of everything in the pod.
    """

    def __init__(self, environ: Mapping[str, str], idle_s: float, run: str = places.RUN) -> None:
        self._environ = dict(environ)
        self._idle_s = idle_s
        self._run = run
        self._trial = 0
        self._is_told_to_end = False

    def main(self) -> int:
        """Run trials until there are none, or the cluster ends the pod; gives the exit code of the container."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        os.makedirs(self._run, mode=0o700, exist_ok=True)
        idle_since_s = time.monotonic()
        while not self._is_told_to_end:
            if os.path.isdir(f"{self._run}/{NEXT}"):
                self._run_next()
                idle_since_s = time.monotonic()
            elif time.monotonic() - idle_since_s > self._idle_s and self._may_end():
                return 0
            time.sleep(_PAUSE_S)
        return PREEMPTED_CODE

    def _may_end(self) -> bool:
        """Take no trial any more, unless one has come at the last moment."""
        with _locked(self._run):
            if os.path.isdir(f"{self._run}/{NEXT}"):
                return False
            with open(f"{self._run}/{ENDED}", "wb"):
                return True

    def _on_sigterm(self, *_: object) -> None:
        self._is_told_to_end = True
        if self._trial:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self._trial, signal.SIGTERM)

    def _run_next(self) -> None:
        for name in _OF_ONE_TRIAL:
            path = f"{self._run}/{name}"
            shutil.rmtree(path, ignore_errors=True)
            with contextlib.suppress(OSError):
                os.unlink(path)
        os.rename(f"{self._run}/{NEXT}", f"{self._run}/{CURRENT}")
        self._trial = os.fork()
        if self._trial == 0:
            self._become_pod()
        while True:  # whatever the trial has left behind is reaped, too
            pid, _ = os.waitpid(-1, 0)
            if pid == self._trial:
                break
        self._trial = 0

    def _become_pod(self) -> None:
        code = 1
        try:
            folder = f"{self._run}/{CURRENT}"
            with open(f"{folder}/{places.TRIAL_FILE}", encoding="utf-8") as file:
                trial = fields.mapping(json.load(file))
            archives = trial.get("archives")
            for archive in archives if isinstance(archives, list) else ():
                if archive.get("path"):
                    archive["path"] = f"{folder}/{os.path.basename(str(archive['path']))}"
            with open(f"{folder}/job", encoding="utf-8") as file:
                job = file.read()
            own = {places.TRIAL_VARIABLE: json.dumps(trial), places.JOB_VARIABLE: job}
            code = Pod({**self._environ, **own}, self._run, folder).main()
        except SystemExit:  # told to end before the trial began
            code = PREEMPTED_CODE
        except BaseException:  # noqa: BLE001 - whatever it is, this process must not go on as a second pilot
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)


@contextlib.contextmanager
def _locked(run: str) -> Iterator[TextIO]:
    """The ids of the trials that were taken, which nobody else changes meanwhile."""
    with open(f"{run}/{RAN}", "a+", encoding="utf-8") as ran:
        fcntl.flock(ran, fcntl.LOCK_EX)
        yield ran


def accept(job: str, data: bytes, run: str = places.RUN) -> None:
    """Take a trial in, unless it was taken before.

    Args:
        job: Its id.
        data: Its files as JSON, each in base64.
        run: The folder of everything in the pod.

    Raises:
        OSError: It cannot be written, or the pod takes no trial any more.
        ValueError: It is no JSON.
    """
    with _locked(run) as ran:
        ran.seek(0)
        if job in ran.read().splitlines():
            return
        if os.path.exists(f"{run}/{ENDED}"):
            raise OSError("the pod has waited for a trial for long enough, and ends")
        draft = f"{run}/{NEXT}.{os.getpid()}"
        os.makedirs(draft, mode=0o700)
        for name, content in {**json.loads(data), "job": base64.b64encode(job.encode()).decode()}.items():
            with open(f"{draft}/{os.path.basename(name)}", "wb") as file:
                file.write(base64.b64decode(content))
        os.rename(draft, f"{run}/{NEXT}")
        ran.write(f"{job}\n")
