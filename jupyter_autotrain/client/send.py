"""The path of every submission: from a spec and its code to an experiment that is on disk and has a manager."""

from __future__ import annotations

import secrets as randomness
import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from jupyter_autotrain.client import data_files, manager_client
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.client.fetching.fetched import fetch_all
from jupyter_autotrain.client.orphans import draft
from jupyter_autotrain.client.tracking import mirror
from jupyter_autotrain.client.waiting import Progress
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import StoreError, UnknownExperimentError
from jupyter_autotrain.store import Store, explained

_ID_BYTES = 5
_HERE = Path()


def send(
    home: Home,
    spec: ExperimentSpec,
    write_bundle: Callable[[Path], Bundle],
    secrets: Mapping[str, str],
    *,
    folder: Path = _HERE,
    progress: Progress | None = None,
) -> Experiment:
    """Submit an experiment. When this returns it is on disk, and a manager is there to run it.

    Order: secrets are looked up, data are fetched and read for their digests, the code is written as a draft, the
    manager is started if none runs, the draft becomes the experiment's folder, and one transaction adds the experiment.
    A failure before that leaves nothing behind but what was fetched; an interrupt after it changes nothing.

    Args:
        home: Where to keep it.
        spec: The experiment; its `bundle` is replaced by what `write_bundle` returns.
        write_bundle: Makes the folder it is given, writes the code into it, synced, and returns its description.
        secrets: Where the values of `spec.secrets` are looked up, such as the variables of the process.
        folder: The folder that paths of `spec.data` are relative to.
        progress: Shows how much of them has been fetched and read.

    Raises:
        StoreError: It could not be stored.
        ManagerError: No manager can be started.
        AutotrainError: A secret is not set.
        MissingExtraError: The library of a server that `spec.track` names is not installed.
        DataError: A file of `spec.data` is not there, or cannot be read or fetched.
    """
    mirror.check(spec.track)
    values = manager_client.secret_values(spec, secrets)
    spec, manifests = data_files.read(home, fetch_all(home, spec, secrets, progress), folder, progress)
    store = Store.open(home)
    experiment_id = randomness.token_hex(_ID_BYTES)
    with explained(home.root), draft(home, experiment_id) as made:
        bundle = write_bundle(made / home.bundle(experiment_id).name)
        for name, manifest in manifests.items():
            path = home.data_manifest(experiment_id, name)
            data_files.write(manifest, made / path.relative_to(home.experiment(experiment_id)))
        manager_client.ensure_manager(home, experiment_id, values)
        try:
            _publish(made, home.experiment(experiment_id))
            store.add_experiment(experiment_id, replace(spec, bundle=bundle), time.time(), BootTime.now())
        except BaseException as error:
            if not (_is_stored(store, home, experiment_id) and isinstance(error, KeyboardInterrupt)):
                raise
    with suppress(KeyboardInterrupt):  # it is stored, and the manager reads the store
        manager_client.notify(home)
    experiment = Experiment(home, store, experiment_id, secrets)
    mirror.start(experiment, secrets)
    return experiment


def _publish(folder: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o700, exist_ok=True)
    folder.rename(target)  # the store syncs it


def _is_stored(store: Store, home: Home, experiment_id: str) -> bool:
    """Return whether an interrupt came after the transaction; if not, the code is removed."""
    with suppress(StoreError):
        try:
            store.experiment(experiment_id)
        except UnknownExperimentError:
            shutil.rmtree(home.experiment(experiment_id), ignore_errors=True)
            return False
        return True
    return False
