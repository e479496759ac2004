"""The submission of trials to Slurm: the script of a job, and one call of `sbatch` for those that come together.

The login node fills in what only it knows: `@JOB_NAME@`, `@BATCH@` (the batch folder), `@PYTHON@` and `@CODE@`.
"""

from __future__ import annotations

import math
import shlex
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.program import PROGRAM
from jupyter_autotrain.core.spec import Resources, TrialSpec

JOB_NAME = "@JOB_NAME@"
BATCH = "@BATCH@"
PYTHON = "@PYTHON@"
CODE = "@CODE@"
OWN_OPTIONS = frozenset({
    "--array", "-a", "--job-name", "-J", "--output", "-o", "--error", "-e", "--open-mode", "--chdir", "-D",
    "--parsable", "--export", "--export-file", "--get-user-env", "--wrap", "--wait", "-W", "--requeue", "--no-requeue",
    "--nodes", "-N", "--ntasks", "-n", "--ntasks-per-node", "--cpus-per-task", "-c", "--mem", "--gres", "--time", "-t",
    "--partition", "-p", "--account", "-A", "--test-only", "--uid", "--gid", "--input", "-i",
})  # fmt: skip
_MARGIN_S = 60.0  # the supervisor ends a trial at its limit, and needs a moment for it
_PILOT_S = 3600.0  # most partitions allow an hour
IDLE_S = 60.0
_MEBIBYTE = 1 << 20
WINDOW_S = 0.02  # a search submits its first trials within a few milliseconds
_STEPS = 4  # of the window; it ends with a step in which none came
MOST_TASKS = 500  # of one array; clusters allow 1,000 or more


def render(trial: TrialSpec, options: Mapping[str, JsonValue]) -> str:
    """Return the script of a trial's job: the same for all trials that may share an array.

    Args:
        trial: What to run.
        options: Options of the profile and of the header's section, as `SlurmOptions` has checked them.
    """
    directives = [f"#SBATCH {one}" for one in _directives(trial, options)]
    part = "slurm_task"
    arguments = ""
    if pilots(trial, options):
        part = "slurm_pilot"
        arguments = f" {_seconds(options.get('reuse_idle'), IDLE_S):g} {60 * _pilot_minutes(trial, options)}"
    start = f'"{PYTHON}" -I -S "{CODE}/{PROGRAM}" {part} "{BATCH}"{arguments}'
    nodes = trial.resources.nodes
    spread = f"srun --mpi=none --nodes={nodes} --ntasks={nodes} --kill-on-bad-exit=1 --unbuffered " if nodes > 1 else ""
    lines = ["#!/bin/bash", *directives, "umask 077", *_texts(options.get("setup")), f"exec {spread}{start}"]
    return "\n".join(lines) + "\n"


def _directives(trial: TrialSpec, options: Mapping[str, JsonValue]) -> list[str]:
    """Return the options of `sbatch`, with those of the user last."""
    found = [
        f"--job-name={JOB_NAME}", f'--output="{BATCH}/output-%a"', "--open-mode=append", f'--chdir="{BATCH}"',
        *_resources(trial.resources, options),
    ]  # fmt: skip
    is_pilot = pilots(trial, options) > 0
    minutes = _pilot_minutes(trial, options) if is_pilot else _minutes(trial, options)
    if minutes:
        found.append(f"--time={minutes}")
    found += [f"--{name}={shlex.quote(str(options[name]))}" for name in ("partition", "account") if options.get(name)]
    # The first run removes the secrets of a trial, so one that has any cannot begin again.
    # A pilot that is gone is replaced by another one.
    is_requeued = options.get("requeue") and not trial.secrets and not is_pilot
    found.append("--requeue" if is_requeued else "--no-requeue")
    return found + _texts(options.get("extra"))


def _resources(needs: Resources, options: Mapping[str, JsonValue]) -> list[str]:
    found = [f"--nodes={needs.nodes}", "--ntasks-per-node=1"]
    if needs.cpus is not None:
        found.append(f"--cpus-per-task={math.ceil(needs.cpus)}")
    if needs.memory_bytes is not None:
        found.append(f"--mem={math.ceil(needs.memory_bytes / _MEBIBYTE)}M")
    if needs.gpus:
        kind = options.get("gpu_type")
        found.append(f"--gres=gpu:{kind}:{needs.gpus}" if kind else f"--gres=gpu:{needs.gpus}")
    return found


def pilots(trial: TrialSpec, options: Mapping[str, JsonValue]) -> int:
    """Return the number of pilot jobs for such trials; 0 makes each a job of its own, as on several nodes."""
    reuse = options.get("reuse")
    return int(reuse) if isinstance(reuse, int) and trial.resources.nodes == 1 else 0


def _pilot_minutes(trial: TrialSpec, options: Mapping[str, JsonValue]) -> int:
    """Return the time limit of a pilot in minutes, which has room for one trial at least."""
    return max(_minutes(trial, {}), math.ceil(_seconds(options.get("time"), _PILOT_S) / 60))


def _seconds(value: JsonValue, default_s: float) -> float:
    return float(value) if isinstance(value, (int, float)) else default_s


def _minutes(trial: TrialSpec, options: Mapping[str, JsonValue]) -> int:
    """Return the time limit in minutes; 0 leaves it to the partition."""
    own_s = options.get("time")
    if trial.timeout_s is not None:
        return math.ceil((trial.timeout_s + _MARGIN_S) / 60)
    return math.ceil(own_s / 60) if isinstance(own_s, (int, float)) else 0


def _texts(value: JsonValue) -> list[str]:
    return list(map(str, value)) if isinstance(value, Sequence) and not isinstance(value, str) else []


class Batcher:
    """A collector of tasks with the same script, which waits a moment and hands them over in one call.

    Args:
        submit: Hands tasks with their script over.
        window_s: How long the first of them waits for others at most; much less where none come.
    """

    def __init__(self, submit: Callable[[Sequence[JsonObject], str], None], window_s: float = WINDOW_S) -> None:
        self._submit = submit
        self._window_s = window_s
        self._lock = threading.Lock()
        self._waiting: dict[str, list[tuple[JsonObject, Future[None]]]] = {}

    def submit(self, task: JsonObject, script: str) -> None:
        """Hand a task over, and return when Slurm has it.

        Raises:
            AutotrainError: Whatever handing the batch over raises.
        """
        done: Future[None] = Future()
        with self._lock:
            group = self._waiting.get(script)
            is_first = group is None or len(group) >= MOST_TASKS
            if group is None or is_first:
                group = self._waiting[script] = []
            group.append((task, done))
        if is_first:
            self._wait_for_others(group)
            self._hand_over(group, script)
        done.result()

    def _wait_for_others(self, group: list[tuple[JsonObject, Future[None]]]) -> None:
        for _ in range(_STEPS):
            before = len(group)
            time.sleep(self._window_s / _STEPS)
            if len(group) == before:
                return

    def _hand_over(self, group: list[tuple[JsonObject, Future[None]]], script: str) -> None:
        with self._lock:
            if self._waiting.get(script) is group:
                del self._waiting[script]
        unique: dict[str, JsonObject] = {str(task["directory"]): task for task, _ in group}
        try:
            self._submit(list(unique.values()), script)
        except BaseException as error:  # noqa: BLE001 - every waiter gets it
            for _, done in group:
                done.set_exception(error)
            return
        for _, done in group:
            done.set_result(None)
