"""The script that `sbatch` gets: pure text from a trial and the options of its backend.

The login node fills in what only it knows: `@JOB_NAME@`, `@BATCH@` (the batch folder), `@PYTHON@` and `@CODE@`.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping, Sequence

from jupyter_autotrain.core.json import JsonValue
from jupyter_autotrain.core.spec import TrialSpec

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


def render(trial: TrialSpec, options: Mapping[str, JsonValue]) -> str:
    """The script of a trial's job; the same for all trials that may share an array.

    Args:
        trial: What to run.
        options: Options of the profile and of the header's section, as `SlurmOptions` has checked them.
    """
    directives = [f"#SBATCH {one}" for one in _directives(trial, options)]
    program = "start_slurm_task.py"
    arguments = ""
    if pilots(trial, options):
        program = "start_slurm_pilot.py"
        arguments = f" {_seconds(options.get('reuse_idle'), IDLE_S):g} {60 * _pilot_minutes(trial, options)}"
    start = f'"{PYTHON}" -I -S "{CODE}/jupyter_autotrain/worker/{program}" "{BATCH}"{arguments}'
    nodes = trial.resources.nodes
    spread = f"srun --mpi=none --nodes={nodes} --ntasks={nodes} --kill-on-bad-exit=1 --unbuffered " if nodes > 1 else ""
    lines = ["#!/bin/bash", *directives, "umask 077", *_texts(options.get("setup")), f"exec {spread}{start}"]
    return "\n".join(lines) + "\n"


def _directives(trial: TrialSpec, options: Mapping[str, JsonValue]) -> list[str]:
    """The options of `sbatch`, those of the user last."""
    needs = trial.resources
    found = [
        f"--job-name={JOB_NAME}", f'--output="{BATCH}/output-%a"', "--open-mode=append", f'--chdir="{BATCH}"',
        f"--nodes={needs.nodes}", "--ntasks-per-node=1",
    ]  # fmt: skip
    if needs.cpus is not None:
        found.append(f"--cpus-per-task={math.ceil(needs.cpus)}")
    if needs.memory_bytes is not None:
        found.append(f"--mem={math.ceil(needs.memory_bytes / _MEBIBYTE)}M")
    if needs.gpus:
        kind = options.get("gpu_type")
        found.append(f"--gres=gpu:{kind}:{needs.gpus}" if kind else f"--gres=gpu:{needs.gpus}")
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


def pilots(trial: TrialSpec, options: Mapping[str, JsonValue]) -> int:
    """How many pilot jobs run such trials; 0: each is a job of its own, as one on several nodes always is."""
    reuse = options.get("reuse")
    return int(reuse) if isinstance(reuse, int) and trial.resources.nodes == 1 else 0


def _pilot_minutes(trial: TrialSpec, options: Mapping[str, JsonValue]) -> int:
    """The time limit of a pilot, which has room for one trial at least."""
    return max(_minutes(trial, {}), math.ceil(_seconds(options.get("time"), _PILOT_S) / 60))


def _seconds(value: JsonValue, default_s: float) -> float:
    return float(value) if isinstance(value, (int, float)) else default_s


def _minutes(trial: TrialSpec, options: Mapping[str, JsonValue]) -> int:
    """The time limit; 0 leaves it to the partition."""
    own_s = options.get("time")
    if trial.timeout_s is not None:
        return math.ceil((trial.timeout_s + _MARGIN_S) / 60)
    return math.ceil(own_s / 60) if isinstance(own_s, (int, float)) else 0


def _texts(value: JsonValue) -> list[str]:
    return [str(item) for item in value] if isinstance(value, Sequence) and not isinstance(value, str) else []
