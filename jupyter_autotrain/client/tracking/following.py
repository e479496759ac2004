"""The program that delivers an experiment to a tracking server while it runs, and on until the server has all of it.

`python -m jupyter_autotrain.client.tracking.following HOME ID NAME` is started with a submission whose header has
`track:`. It goes on where one before it has ended, and tries again while the server is away.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.client.lookup import find
from jupyter_autotrain.client.tracking.exporter import exporter
from jupyter_autotrain.client.tracking.mirror import Mirror
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.errors import AutotrainError, MissingExtraError

_POLL_S: Final = 2.0
_LONGEST_PAUSE_S: Final = 60.0
_GIVES_UP_S: Final = 86_400.0  # after the last delivery; `%autotrain track` goes on


def check(names: Sequence[str]) -> None:
    """Make sure that the libraries of these servers are installed.

    Raises:
        MissingExtraError: One is not.
    """
    for name in names:
        if find_spec(name) is None:
            raise MissingExtraError(name, name, f"track: {name}")


def start(experiment: Experiment, environ: Mapping[str, str]) -> None:
    """Start the program for each server that the experiment's header names; it outlives this process."""
    home = experiment.home.root
    for name in experiment.record.spec.track:
        folder = experiment.home.experiment(experiment.id) / "tracking"
        folder.mkdir(mode=0o700, exist_ok=True)
        with (folder / f"{name}.log").open("ab") as log:
            subprocess.run(
                [sys.executable, "-m", "jupyter_autotrain.client.tracking.following", str(home), experiment.id, name],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=dict(environ), start_new_session=True,
                check=False,
            )  # fmt: skip


def follow(mirror: Mirror, pause_s: float = _POLL_S, gives_up_s: float = _GIVES_UP_S) -> bool:
    """Deliver until the experiment has ended and the server has all of it.

    Returns:
        True then; False where the server has taken nothing for so long.
    """
    taken_s = time.monotonic()
    wait_s = pause_s
    while time.monotonic() - taken_s < gives_up_s:
        try:
            if mirror.deliver():
                return True
            taken_s = time.monotonic()
            wait_s = pause_s
        except AutotrainError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever the server's library raises: it is asked again
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            wait_s = min(2 * wait_s, _LONGEST_PAUSE_S)
        time.sleep(wait_s)
    return False


def main(home: str, experiment_id: str, name: str) -> None:
    """Deliver one experiment to one server, in a process that nobody waits for."""
    if os.fork():
        os._exit(0)
    mirror = Mirror(find(experiment_id, Home(Path(home)), None), name, exporter(name))
    with mirror.alone():
        follow(mirror)


if __name__ == "__main__":
    os.umask(0o077)
    main(*sys.argv[1:])
