"""Experiments that were submitted before: all of them, or the one that a name means.

Environment and folder are read here and passed on. This module loads nothing that only a submission needs.
"""

from __future__ import annotations

import os
from contextlib import closing, suppress
from pathlib import Path
from typing import Final

from jupyter_core.paths import jupyter_data_dir

from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.client.origin import here
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.origin import Origin
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.errors import ManagerError
from jupyter_autotrain.store import Store

_ALL: Final = 1 << 62


def experiments(*, home: Home | None = None, limit: int | None = None) -> list[Experiment]:
    """All experiments, newest first.

    Args:
        home: Whose experiments; None means the user's home folder of experiments.
        limit: At most so many.
    """
    return [experiment for experiment, _ in listed(home=home, limit=limit)]


def listed(*, home: Home | None = None, limit: int | None = None) -> list[tuple[Experiment, ExperimentRecord]]:
    """All experiments as `experiments` gives them, each with its record, from one read."""
    home = home or default_home()
    store = Store.open(home)
    records = store.experiments(_ALL if limit is None else limit)
    found = [(Experiment(home, store, record.id, os.environ), record) for record in records]
    unfinished = [experiment for experiment, record in found if not record.state.is_final]
    _ensure_manager(unfinished[:1])
    return found


def experiment_names(*, home: Home | None = None, limit: int = 200) -> list[str]:
    """The names of the newest experiments, newest first; this changes nothing and starts no manager."""
    home = home or default_home()
    if not home.store.is_file():
        return []
    with closing(Store.open(home)) as store:
        return [record.label for record in store.experiments(limit)]


def attach(reference: str, *, home: Home | None = None) -> Experiment:
    """A handle of an experiment submitted before, from here or elsewhere.

    Args:
        reference: Its name (the newest of that name), `name@N`, a unique prefix of its id, `-1` or `_` (the newest of
            this notebook; in a script the newest of the home).
        home: Whose experiment; None means the user's home folder of experiments.

    Raises:
        UnknownExperimentError: None or several match; names the nearest.
    """
    return find(reference, home or default_home(), here())


def find(reference: str, home: Home, origin: Origin | None) -> Experiment:
    """The experiment that a reference from `origin` means; see `attach`."""
    store = Store.open(home)
    record = store.find(reference, origin)
    handle = Experiment(home, store, record.id, os.environ)
    if not record.state.is_final:
        _ensure_manager([handle])
    return handle


def unfinished(home: Home, name: str, origin: Origin) -> list[Experiment]:
    """The experiments of this name, submitted from this notebook, that still run; oldest first."""
    store = Store.open(home)
    return [Experiment(home, store, record.id, os.environ) for record in store.unfinished_of(name, origin)]


def default_home() -> Home:
    """The user's home folder of experiments: `JUPYTER_AUTOTRAIN_HOME`, else in the Jupyter data directory."""
    return Home.from_environment(os.environ, Path(jupyter_data_dir()))


def _ensure_manager(handles: list[Experiment]) -> None:
    # Reading works also where no manager can be started; a manager that was killed is started again.
    for handle in handles:
        with suppress(ManagerError):
            handle.ensure_manager()
