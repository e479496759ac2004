"""The one path all submissions take: from a spec and its code to an experiment that is on disk and served."""

from __future__ import annotations

import os
import secrets as randomness
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from jupyter_autotrain.client import attention
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import StoreError, UnknownExperimentError
from jupyter_autotrain.store import Store, explained

_ID_BYTES = 5


def send(
    home: Home, spec: ExperimentSpec, write_bundle: Callable[[Path], Bundle], secrets: Mapping[str, str]
) -> Experiment:
    """Submit an experiment. When this returns it is on disk, and a manager is there to run it.

    Order: secrets are looked up, the code is written and synced, the manager is roused, and then one transaction makes
    the experiment exist. Any failure before that leaves nothing behind.

    Args:
        home: Where to keep it.
        spec: What is wished; its `bundle` is replaced by what `write_bundle` gives back.
        write_bundle: Writes the code into an existing folder and describes it.
        secrets: Where the values of `spec.secrets` are looked up, such as the environment.

    Raises:
        StoreError: It could not be kept.
        ManagerError: No manager can be started.
        AutotrainError: A secret is not set.
    """
    values = attention.secret_values(spec, secrets)
    store = Store.open(home)
    experiment_id = randomness.token_hex(_ID_BYTES)
    try:
        with explained(home.experiment(experiment_id)):
            bundle = _write(home, experiment_id, write_bundle)
        attention.rouse(home, experiment_id, values)
        store.add_experiment(experiment_id, replace(spec, bundle=bundle), time.time())
    except BaseException:
        _tidy(store, home, experiment_id)
        raise
    attention.ring(home)
    return Experiment(home, store, experiment_id, secrets)


def _write(home: Home, experiment_id: str, write_bundle: Callable[[Path], Bundle]) -> Bundle:
    folder = home.bundle(experiment_id)
    for part in (folder.parent.parent, folder.parent, folder):
        part.mkdir(mode=0o700, exist_ok=True)
    bundle = write_bundle(folder)
    for path in (*folder.rglob("*"), folder, folder.parent, folder.parent.parent):
        _sync(path)
    # Trials run where the code came from, whoever started the manager.
    return replace(bundle, python=bundle.python or sys.executable)


def _sync(path: Path) -> None:
    if path.is_symlink():
        return
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fchmod(fd, os.fstat(fd).st_mode & 0o700)
        os.fsync(fd)
    finally:
        os.close(fd)


def _tidy(store: Store, home: Home, experiment_id: str) -> None:
    """Remove the code of an experiment that does not exist; an interrupt may have come after the transaction."""
    with suppress(StoreError):
        try:
            store.experiment(experiment_id)
        except UnknownExperimentError:
            shutil.rmtree(home.experiment(experiment_id), ignore_errors=True)
