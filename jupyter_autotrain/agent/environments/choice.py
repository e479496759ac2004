"""The environment that a trial asks for. Every supervisor imports this; few import the code that makes environments."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence

from jupyter_autotrain.agent import fields, system
from jupyter_autotrain.agent.program import program

MAKING = "Its Python environment is made."


def kind_and_value(trial: Mapping[str, object]) -> tuple[str, str]:
    """Return the kind and the value that the trial asks for, as `agent.environments.python_environment` has them.

    Args:
        trial: `TrialSpec` as JSON.
    """
    asked = fields.mapping(trial.get("python_environment"))
    return str(asked.get("kind") or "place"), str(asked.get("value") or "")


def is_made(trial: Mapping[str, object]) -> bool:
    """Tell whether the environment may have to be made before the cell begins."""
    return kind_and_value(trial)[0] in {"match", "requirements"}


def interpreter(trial: Mapping[str, object]) -> str:
    """Return the interpreter of a trial's workers, where it is known beforehand; else that of the place.

    Args:
        trial: `TrialSpec` as JSON.
    """
    kind, value = kind_and_value(trial)
    return os.path.expanduser(value) if kind == "python" else str(trial["python"])


def command(trial: Mapping[str, object], argv: Sequence[str]) -> list[str]:
    """Return the command that starts a worker: `argv` itself, or a program that enters the trial's environment first.

    Args:
        trial: `TrialSpec` as JSON.
        argv: The interpreter of the place, a script, and its arguments.
    """
    kind, _ = kind_and_value(trial)
    if kind in {"place", "python"}:
        return [interpreter(trial), *argv[1:]]
    return _wrapped(trial, "worker", argv)


def launcher_command(trial: Mapping[str, object], argv: Sequence[str]) -> list[str]:
    """Return the command of a launcher's program. It starts workers, so it gets the interpreter that they will have.

    Args:
        trial: `TrialSpec` as JSON.
        argv: The program: the interpreter of the place, or another one.
    """
    kind, _ = kind_and_value(trial)
    if kind in {"place", "image", "python"}:  # a launcher starts a container for each rank
        return [interpreter(trial) if argv[0] == trial["python"] else argv[0], *argv[1:]]
    return _wrapped(trial, "launcher", argv)


def mpi_command(trial: Mapping[str, object], rank_command: Sequence[str]) -> list[str]:
    """Return the command that starts the `mpiexec` of an environment that is yet to be made, once it is made.

    Args:
        trial: `TrialSpec` as JSON.
        rank_command: What starts a rank.
    """
    return _wrapped(trial, "mpi", rank_command)


def _wrapped(trial: Mapping[str, object], role: str, argv: Sequence[str]) -> list[str]:
    return [sys.executable, *system.INTERPRETER_FLAGS, *program("environment"), str(trial["directory"]), role, *argv]


def remove_containers(trial: Mapping[str, object], environ: Mapping[str, str]) -> None:
    """Remove the containers that are left of a trial when its processes have ended."""
    if kind_and_value(trial)[0] != "image":
        return
    from jupyter_autotrain.agent.environments import image  # noqa: PLC0415 - the same
    from jupyter_autotrain.agent.trial import environment  # noqa: PLC0415 - only trials in containers pay

    image.remove(trial, environment.complete(trial, environ), fields.integer(trial.get("workers"), 1))
