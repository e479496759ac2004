"""The process between a launcher that starts ranks itself and the worker: a small one per rank.

It gives the worker its streams and variables, and tells the supervisor how the worker began and ended, so that all of
this is the same under each launcher. It ends with the launcher's process, and the worker with it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time

from jupyter_autotrain.agent import fields, launchers, system, wire
from jupyter_autotrain.agent.environments import choice as environments
from jupyter_autotrain.agent.launchers import rank_channel
from jupyter_autotrain.agent.program import program
from jupyter_autotrain.agent.supervisor.streams import EventWaiter, OutputStreams
from jupyter_autotrain.agent.supervisor.worker_process import Worker
from jupyter_autotrain.agent.trial import outcome, rank_layout, trial_file

_GRACE_S = 3.0  # after SIGTERM
_WAIT_S = 1.0


def main(directory: str) -> None:
    """Run one rank in `directory`; end the process with the worker's exit code, 128 + N for a signal N."""
    os.umask(0o077)
    os.chdir(directory)
    system.die_with_parent(os.getppid())
    trial = trial_file.read(".")
    launcher = launchers.launcher_of(trial, rank_layout.of_trial(trial))
    local_rank, additions = launcher.adapt(os.environ)
    env = {**os.environ, **additions, wire.TRIAL_VARIABLE: directory}
    waiter = EventWaiter()
    secrets = [env[name] for name in fields.strings(trial.get("secrets")) if env.get(name)]
    rank = launcher.layout.rank(local_rank)
    worker = Worker(rank, local_rank, OutputStreams(rank, secrets, waiter))
    worker.start(environments.command(trial, [str(trial["python"]), *program("worker"), directory]), env)
    channel = rank_channel.open_for_writing(directory, local_rank)
    rank_channel.write(channel, {"process": worker.process})
    code = _watch(worker, waiter)
    _, ended = outcome.read(worker.outcome)
    rank_channel.write(channel, {"exit_status": worker.exit_status, "terminated": waiter.got_sigterm, "outcome": ended})
    os._exit(128 - code if code < 0 else code)


def _watch(worker: Worker, waiter: EventWaiter) -> int:
    """Pass on the worker's output until it has ended; a SIGTERM ends it."""
    deadline_s = 0.0
    while worker.is_running:
        waiter.wait(_WAIT_S)
        worker.streams.pump()
        if waiter.got_sigterm and not deadline_s:
            deadline_s = time.monotonic() + _GRACE_S
            _signal(worker, signal.SIGTERM)
        elif deadline_s and time.monotonic() > deadline_s:
            _signal(worker, signal.SIGKILL)
        pid, status = os.waitpid(worker.pid, os.WNOHANG)
        if pid == worker.pid:
            worker.reaped(status)
    worker.streams.finish()
    return os.waitstatus_to_exitcode(worker.exit_status or 0)


def _signal(worker: Worker, number: int) -> None:
    """Signal the worker and all of its session."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(worker.pid, number)
