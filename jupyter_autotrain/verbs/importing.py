"""The verb `import`: an experiment of another tool runs here, unmodified."""

from __future__ import annotations

import argparse

from jupyter_autotrain.client.importing import import_nni
from jupyter_autotrain.verbs.context import CommandContext


def import_experiment(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Submit the experiment of a file, and show it."""
    given = {"name": arguments.name, "backend": arguments.backend, "trials": arguments.trials}
    settings = {key: value for key, value in given.items() if value is not None}
    path = command.cwd / arguments.file
    experiment = import_nni(path, command.home, command.environ, settings, command.write, command.origin)
    command.show(experiment)
