"""The start of a worker in the environment that its trial asks for; see `agent.environments.python_environment`.

A virtual environment is made by the worker's own process before it becomes the interpreter: so the trial's limits,
its stop and its end hold for the making as well.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from jupyter_autotrain.agent import fields, system
from jupyter_autotrain.agent.environments import conda, image, virtual
from jupyter_autotrain.agent.environments.choice import kind_and_value
from jupyter_autotrain.agent.environments.prepared import NotPreparedError, Prepared
from jupyter_autotrain.agent.program import program
from jupyter_autotrain.agent.trial import outcome, trial_file

_UNUSED_FD = 16  # above those that a container gets
_BY_SIGNAL = 128  # an exit code above it means that signal
MpiCommand = Callable[[Mapping[str, object], str, Sequence[str]], list[str]]
DEFAULT_ROOT = "~/.autotrain/environments"


def main(directory: str, role: str, argv: Sequence[str], mpi_command: MpiCommand) -> None:
    """Become the worker, or a launcher's program, in the trial's environment.

    Args:
        directory: The trial directory.
        role: `worker`: then `argv` ends with the descriptor of its outcome; `launcher`; or `mpi`: then `argv` starts a
            rank, and the program is the environment's `mpiexec`.
        argv: The command; an interpreter of the place becomes that of the environment.
        mpi_command: Gives the command of `mpiexec` for a trial, an interpreter and what starts a rank.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that what is half-made is removed
    trial = trial_file.read(directory)
    try:
        if kind_and_value(trial)[0] == "image":
            _run_container(trial, int(argv[-1]))
        prepared = _prepare(trial, str(trial["python"]))
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if role == "mpi":
            argv = mpi_command(trial, prepared.python, argv)
        program = prepared.python if argv[0] == trial["python"] else argv[0]
        os.execve(program, [program, *argv[1:]], prepared.environ(os.environ))  # noqa: S606 - it becomes the user's program
    except (NotPreparedError, OSError) as error:
        reason = str(error) if isinstance(error, NotPreparedError) else f"The environment cannot be used: {error}."
        _say(reason)
        if role == "worker":
            failed = {"state": "FAILED", "reason": reason, "kind": "environment", "traceback": "", "cell_line": ""}
            outcome.write(int(argv[-1]), failed)
        sys.exit(1)


def _prepare(trial: Mapping[str, object], python: str) -> Prepared:
    kind, value = kind_and_value(trial)
    if kind == "conda":
        return conda.find(value, os.environ)
    requirements = fields.strings(fields.mapping(trial.get("python_environment")).get("requirements"))
    root = os.path.expanduser(str(trial.get("environments") or DEFAULT_ROOT))
    return virtual.make(root, python, requirements, os.environ, _say)


def _say(line: str) -> None:
    with contextlib.suppress(OSError):  # a full disk must not end the making
        print(line, file=sys.stderr, flush=True)  # noqa: T201 - the trial's own stderr


def _run_container(trial: Mapping[str, object], channel: int) -> None:
    """Run the worker in a container, and end as it does."""
    rank = int(os.environ.get("LOCAL_RANK", "0"))
    channel = fcntl.fcntl(channel, fcntl.F_DUPFD_CLOEXEC, _UNUSED_FD)
    directory = str(trial["directory"])
    runtime = image.find_runtime(os.environ)
    forwards = "forward" if os.path.basename(runtime) != "podman" else "signalled"
    outcome_file = image.outcome_file(directory, rank)
    os.close(os.open(outcome_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600))
    words = [*program("container"), directory, outcome_file, forwards]
    argv = image.command(trial, kind_and_value(trial)[1], runtime, words, os.environ, rank)
    code = _wait(argv)
    with open(outcome_file, "rb") as file:
        os.write(channel, file.read())
    os.unlink(outcome_file)
    if code > _BY_SIGNAL:
        with contextlib.suppress(OSError):  # SIGKILL has no handler
            signal.signal(code - _BY_SIGNAL, signal.SIG_DFL)
        os.kill(os.getpid(), code - _BY_SIGNAL)
    sys.exit(code)


def _wait(argv: Sequence[str]) -> int:
    """Run the container's client to its end, and return its exit code.

    The client keeps its input open as long as this process lives.
    """
    me = os.getpid()
    signal.signal(signal.SIGTERM, lambda *_: None)  # the container's processes get their own
    for number, fd in enumerate(image.OUTPUT_FDS, 1):
        os.dup2(number, fd)
    client = subprocess.Popen(
        argv,
        stdin=subprocess.PIPE,
        pass_fds=image.OUTPUT_FDS,
        preexec_fn=lambda: system.die_with_parent(me),  # noqa: PLW1509 - there is one thread
    )
    code = client.wait()
    return code if code >= 0 else _BY_SIGNAL - code
