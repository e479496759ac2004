"""Which environment a trial asks for. Every supervisor imports this; what makes environments is imported by few."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from jupyter_autotrain.core import system
from jupyter_autotrain.worker import fields

MAKING = "Its Python environment is made."
_SCRIPT = "start_in_environment.py"


def kind_and_value(trial: Mapping[str, object]) -> tuple[str, str]:
    """What the trial asks for, as `core.python_environment` has it.

    Args:
        trial: `TrialSpec` as JSON.
    """
    asked = fields.mapping(trial.get("python_environment"))
    return str(asked.get("kind") or "place"), str(asked.get("value") or "")


def is_made(trial: Mapping[str, object]) -> bool:
    """True when the environment may have to be made before the cell begins."""
    return kind_and_value(trial)[0] in {"match", "requirements"}


def interpreter(trial: Mapping[str, object]) -> str:
    """The interpreter of a trial's workers, where it is known beforehand; else that of the place.

    Args:
        trial: `TrialSpec` as JSON.
    """
    kind, value = kind_and_value(trial)
    return os.path.expanduser(value) if kind == "python" else str(trial["python"])


def command(trial: Mapping[str, object], argv: Sequence[str]) -> list[str]:
    """How to start a worker: `argv` itself, or what puts it into the trial's environment first.

    Args:
        trial: `TrialSpec` as JSON.
        argv: The interpreter of the place, a script, and its arguments.
    """
    kind, _ = kind_and_value(trial)
    if kind in {"place", "python"}:
        return [interpreter(trial), *argv[1:]]
    return _wrapped(trial, "worker", argv)


def launcher_command(trial: Mapping[str, object], argv: Sequence[str]) -> list[str]:
    """How to start a launcher's program, which itself starts workers: with the interpreter that they will have.

    Args:
        trial: `TrialSpec` as JSON.
        argv: The program: the interpreter of the place, or another one.
    """
    kind, _ = kind_and_value(trial)
    if kind in {"place", "image", "python"}:  # a launcher starts a container for each rank
        return [interpreter(trial) if argv[0] == trial["python"] else argv[0], *argv[1:]]
    return _wrapped(trial, "launcher", argv)


def mpi_command(trial: Mapping[str, object], rank_command: Sequence[str]) -> list[str]:
    """How to start the `mpiexec` of an environment that is yet to be made, once it is.

    Args:
        trial: `TrialSpec` as JSON.
        rank_command: What starts a rank.
    """
    return _wrapped(trial, "mpi", rank_command)


def _wrapped(trial: Mapping[str, object], role: str, argv: Sequence[str]) -> list[str]:
    script = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), _SCRIPT)
    return [sys.executable, *system.INTERPRETER_FLAGS, script, str(trial["directory"]), role, *argv]


def remove_containers(trial: Mapping[str, object], environ: Mapping[str, str]) -> None:
    """Remove what is left of the containers of a trial, when its processes have ended."""
    if kind_and_value(trial)[0] != "image":
        return
    from jupyter_autotrain.worker import environment  # noqa: PLC0415 - only trials in containers pay
    from jupyter_autotrain.worker.environments import image  # noqa: PLC0415 - the same

    image.remove(trial, environment.complete(trial, environ), fields.integer(trial.get("workers"), 1))
