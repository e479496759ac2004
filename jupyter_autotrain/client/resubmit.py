"""Submitting a stored experiment again: its captured code and specification, as a new experiment of the same name."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from jupyter_autotrain.client import data_files
from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.client.send import send
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.core.spec import Bundle
from jupyter_autotrain.core.system import durable
from jupyter_autotrain.errors import AutotrainError


def resubmit(home: Home, record: ExperimentRecord, secrets: Mapping[str, str]) -> Experiment:
    """Submit an experiment again, with its data as they are now. When this returns, the new one is on disk.

    Args:
        home: The home of both.
        record: The experiment to submit again.
        secrets: Where the values of its secrets are looked up.

    Raises:
        AutotrainError: Its code is gone, or a secret is not set.
        DataError: What it reads besides is gone.
        StoreError: It could not be stored; then nothing was started.
        ManagerError: No manager can be started.
    """
    bundle = home.bundle(record.id)
    if not (bundle / record.spec.bundle.script).is_file():
        raise AutotrainError(
            f"The code of {record.label} is gone: {bundle} does not hold it.",
            "The captured cell as it was submitted.",
            "Run the notebook cell again.",
        )

    def copy_bundle(folder: Path) -> Bundle:
        _copy_synced(bundle, folder)
        return record.spec.bundle

    spec, data = data_files.read(home, record.spec, Path(record.spec.bundle.cwd or home.root))
    return send(home, spec, copy_bundle, secrets, data)


def _copy_synced(source: Path, target: Path) -> None:
    shutil.copytree(source, target, symlinks=True)
    for folder, _, names in os.walk(target):
        for path in (*(Path(folder, name) for name in names), Path(folder)):
            if not path.is_symlink():
                durable.sync_path(path)
