"""The start of a trial's supervisor. A start that may have happened is looked for, never assumed not to be.

Time alone proves nothing here: this process may have been paused while the start went on. So no start fails because
it takes long; then the job goes on being watched, and its lock shows whether it lives.
"""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from jupyter_autotrain.agent.errors import BackendError
from jupyter_autotrain.agent.service import status_resolution
from jupyter_autotrain.agent.system import disk
from jupyter_autotrain.agent.trial import status as statuses
from jupyter_autotrain.agent.trial import trial_lock

_START_S = 20.0  # then the caller returns; the start goes on
_FOR_NOW_S = 60.0  # how long to try again while the machine has nothing to start it with
_FIRST_PAUSE_S = 0.05
_MOST_PAUSE_S = 2.0
_LOOK_AGAIN_S = 0.005
_ERRNO = re.compile(r"\[Errno (\d+)\]")


class StartError(Exception):
    """An error of a starter that ended, and left nothing of the trial alive.

    Args:
        number: The errno that it printed, if any.
        output: The last line that it printed.
    """

    def __init__(self, number: int | None, output: str) -> None:
        super().__init__(output)
        self.number = number


def has_begun(directory: Path) -> bool:
    """Tell whether this trial was started before, or is just being started."""
    if statuses.is_there(directory):
        return True
    try:
        return trial_lock.is_held(str(directory))
    except OSError:
        return bool(status_resolution.supervisors(directory))


def start(argv: Sequence[str], env: Mapping[str, str], directory: Path) -> None:
    """Run the starter, and wait until the trial has begun, by it or by another starter.

    Raises:
        StartError: It could not begin, and has not.
        OSError: The starter cannot be run.
    """
    deadline = time.monotonic() + _START_S
    while True:
        code, output = _run(argv, env)
        if code is None or _wait(directory, deadline):
            return
        if code != 0:
            number = _ERRNO.search(output)
            raise StartError(int(number[1]) if number else None, _last_line(output) or f"exit code {code}")
        if time.monotonic() > deadline:
            raise StartError(None, "another starter took the trial and did not begin it")


def _run(argv: Sequence[str], env: Mapping[str, str]) -> tuple[int | None, str]:
    """Return the starter's exit code, None while it still runs, and its output on stderr."""
    starter = subprocess.Popen(
        argv, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        start_new_session=True, text=True, errors="replace",
    )  # fmt: skip
    try:
        _, output = starter.communicate(timeout=_START_S)
    except subprocess.TimeoutExpired:
        threading.Thread(target=starter.communicate, daemon=True).start()  # it goes on, and is reaped
        return None, ""
    return starter.returncode, output


def _wait(directory: Path, deadline: float) -> bool:
    """Tell whether the trial has begun.

    Nearly always it has begun at once, as the starter returns then. Another starter may need a moment.
    """
    while has_begun(directory):
        if statuses.is_there(directory) or time.monotonic() > deadline:
            return True
        time.sleep(_LOOK_AGAIN_S)
    return False


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else ""


def begin_once(job_id: str, directory: Path, begin: Callable[[], None]) -> None:
    """Begin a trial unless it was begun before; try again while the machine has nothing to start it with.

    Args:
        job_id: Its name, for messages.
        directory: The trial directory.
        begin: Makes the directory, and starts the supervisor.

    Raises:
        BackendError: It cannot be started.
    """
    deadline_s = time.monotonic() + _FOR_NOW_S
    pause_s = _FIRST_PAUSE_S
    while True:
        try:
            if not has_begun(directory):
                begin()
        except (OSError, StartError) as error:
            number = error.errno if isinstance(error, OSError) else error.number
            if not disk.is_for_now(number) or time.monotonic() > deadline_s:
                raise _start_error(job_id, directory, number, str(error)) from error
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _MOST_PAUSE_S)
        else:
            return


def _start_error(job_id: str, directory: Path, number: int | None, output: str) -> BackendError:
    """Return the error that tells a user why a trial cannot be started."""
    found, action = disk.explain(number, str(directory)) or (output.rstrip("."), "Run `%autotrain doctor`, then retry.")
    return BackendError(
        f"Trial {job_id} cannot be started: {found}.", f"A folder that can be written: {_named(directory)}.", action
    )


def _named(directory: Path, most: int = 200) -> str:
    text = str(directory)
    return text if len(text) <= most else f"...{text[-most:]}"
