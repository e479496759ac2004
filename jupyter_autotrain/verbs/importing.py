"""The verb `import`: an experiment of another tool runs here, unmodified.

Its command is the trial, and its folder travels.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from jupyter_autotrain import backends, capture
from jupyter_autotrain import header as headers
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.client.rerun import Dialogue
from jupyter_autotrain.client.submission import Draft, capture_settings, submit_draft
from jupyter_autotrain.client.waiting import Progress
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Origin
from jupyter_autotrain.header.nni.experiment_file import NniExperiment, read_nni_file
from jupyter_autotrain.verbs.context import CommandContext

_CODE = "from jupyter_autotrain.agent.ranks.stand_ins.command import run_command\n\nrun_command({command!r})\n"
_LEFT_OUT = ("nni-experiments", "nni_experiments", "__pycache__")


def import_experiment(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Submit the experiment of a file, and show it."""
    given = {"name": arguments.name, "backend": arguments.backend, "trials": arguments.trials}
    settings = {key: value for key, value in given.items() if value is not None}
    path = command.cwd / arguments.file
    experiment = import_nni(path, command.home, command.environ, settings, command.write, command.origin)
    command.show(experiment)


def import_nni(
    path: Path,
    home: Home,
    environ: Mapping[str, str],
    settings: Mapping[str, object],
    say: Callable[[str], object],
    origin: Origin | None = None,
) -> Experiment:
    """Submit an experiment of NNI; its trials call `nni` as before.

    Args:
        path: Its YAML file.
        home: Where to keep it.
        environ: The variables of the entry point.
        settings: Keys of a header that go before those of the file.
        say: Prints what differs from NNI.
        origin: The notebook that asks for it, whose experiment it is then; None: no notebook's.

    Raises:
        HeaderError: The file or a setting is wrong.
        ShipError: Its folder is too big.
        StoreError: It cannot be stored; then nothing was started.
    """
    found = read_nni_file(path)
    for note in found.notes:
        say(f"{note}\n")
    keys = {**found.settings, "ship": _travelling(found), **settings}
    parsed = headers.from_mapping(keys, backends.header_context(found.folder, environ))
    code = _CODE.format(command=found.command)
    captured = capture.capture(code, {}, label=path.name, **capture_settings(parsed, found.folder))
    unknown = replace(captured, reports=capture.Reports())  # what its files report is not looked for
    draft = Draft(parsed, unknown, path.stem, origin or Origin(), found.folder, environ)
    dialogue = Dialogue(say, lambda _: "")
    return submit_draft(draft, home, dialogue, Progress(lambda _: None, lambda: None)).experiment


def _travelling(found: NniExperiment) -> list[str]:
    """Return the files and folders of the code, without hidden ones and what NNI leaves there."""
    names = sorted(path.name for path in found.folder.iterdir())
    return [name for name in names if not name.startswith(".") and name not in _LEFT_OUT]
