"""Finding what is meant: the notebook this is, and the experiments that were submitted before.

Which notebook this is. JupyterLab puts the path into the kernel's variables, VS Code into the notebook's names;
others give none.

Experiments that were submitted before: all of them, or the one that a name means. Variables and folder are read
here and passed on. This module loads nothing that only a submission needs.
"""

from __future__ import annotations

import os
import secrets as randomness
import sys
from collections.abc import Mapping
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Final

from jupyter_core.paths import jupyter_data_dir

from jupyter_autotrain.client.experiment import Experiment
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.core.spec import Origin
from jupyter_autotrain.errors import ManagerError
from jupyter_autotrain.store import Store

_VARIABLE: Final = "JPY_SESSION_NAME"
_NAMES: Final = ("__vsc_ipynb_file__", "__session__")


def of_notebook(names: Mapping[str, object], environ: Mapping[str, str], folder: str | Path) -> Origin:
    """Return the notebook that runs here.

    Args:
        names: The notebook's names.
        environ: The kernel's variables.
        folder: Where the kernel was started; a relative path starts there.
    """
    paths = [str(names[name]) for name in _NAMES if names.get(name)]
    path = next(iter(paths), environ.get(_VARIABLE, ""))
    return Origin(str(Path(folder, path)) if path else "", _session())


def of_shell(environ: Mapping[str, str]) -> Origin | None:
    """Return the notebook that started this shell or script (`!jupyter autotrain ...`); None for any other."""
    path = environ.get(_VARIABLE, "")
    return Origin(path) if Path(path).is_absolute() else None


def here() -> Origin | None:
    """Get the notebook or interactive session of this process, or that started this script; None if there is none."""
    names = vars(sys.modules["__main__"])
    if "get_ipython" not in names:
        return of_shell(os.environ)
    shell = names["get_ipython"]()
    return of_notebook(names, os.environ, getattr(shell, "starting_dir", "") or Path.cwd())


@cache
def _session() -> str:
    return randomness.token_hex(8)


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
    """Return the names of the newest experiments, newest first; this changes nothing and starts no manager."""
    home = home or default_home()
    if not home.store.is_file():
        return []
    with closing(Store.open(home)) as store:
        return [record.label for record in store.experiments(limit)]


def attach(reference: str, *, home: Home | None = None) -> Experiment:
    """Return a handle of an experiment submitted before, from here or elsewhere.

    Args:
        reference: Its name (the newest of that name), `name@N`, a unique prefix of its id, `-1` or `_` (the newest of
            this notebook; in a script the newest of the home).
        home: Whose experiment; None means the user's home folder of experiments.

    Raises:
        UnknownExperimentError: None or several match; names the nearest.
    """
    return find(reference, home or default_home(), here())


def find(reference: str, home: Home, origin: Origin | None) -> Experiment:
    """Return the experiment that a reference from `origin` means; see `attach`."""
    store = Store.open(home)
    record = store.find(reference, origin)
    handle = Experiment(home, store, record.id, os.environ)
    if not record.state.is_final:
        _ensure_manager([handle])
    return handle


def unfinished(home: Home, name: str, origin: Origin) -> list[Experiment]:
    """Return the experiments of this name, submitted from this notebook, that still run; oldest first."""
    store = Store.open(home)
    return [Experiment(home, store, record.id, os.environ) for record in store.unfinished_of(name, origin)]


def default_home() -> Home:
    """Return the user's home folder of experiments: `JUPYTER_AUTOTRAIN_HOME`, else in the Jupyter data directory."""
    return Home.from_environment(os.environ, Path(jupyter_data_dir()))


def _ensure_manager(handles: list[Experiment]) -> None:
    # Reading works also where no manager can be started; a manager that was killed is started again.
    for handle in handles:
        with suppress(ManagerError):
            handle.ensure_manager()
