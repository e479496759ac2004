"""What is left at the places of a home's experiments: objects of a cluster, trial directories of what was deleted."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from jupyter_autotrain import backends
from jupyter_autotrain.backends import trial_files
from jupyter_autotrain.client import orphans
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.leftovers import LeftoverBackend, TrialFilesBackend
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.sizes import format_bytes
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Store

_MOST_EXPERIMENTS = 1000  # the newest, whose profiles are looked at


@dataclass(frozen=True, slots=True)
class PlaceLeftovers:
    """What one place has of a home.

    Attributes:
        backend: The name of its profile.
        names: What is left there.
        fault: Why that is not known; "" when it is.
    """

    backend: str
    names: Sequence[str] = ()
    fault: str = ""


def find(home: Home, store: Store, profiles: Iterable[Profile] = ()) -> list[PlaceLeftovers]:
    """What is left, place by place; places that keep nothing of a home are not asked.

    Args:
        home: The home.
        store: Its store; the profiles of its experiments are looked at.
        profiles: Further ones, such as those that files define now.
    """
    return [found for found in _each(home, store, profiles, remove=False) if found.names or found.fault]


def remove(home: Home, store: Store, profiles: Iterable[Profile] = ()) -> list[PlaceLeftovers]:
    """Remove what `find` finds; gives what was removed."""
    return [found for found in _each(home, store, profiles, remove=True) if found.names or found.fault]


def remove_trials(home: Home, profiles: Iterable[Profile], experiment_id: str) -> None:
    """Delete the trial directories of an experiment at these places, as far as they answer."""
    for profile in profiles:
        with _backend(profile, home) as backend:
            trial_files.remove(backend, experiment_id)


def _each(home: Home, store: Store, profiles: Iterable[Profile], *, remove: bool) -> Iterator[PlaceLeftovers]:
    known = {profile.key: profile for profile in profiles}
    for record in store.experiments(_MOST_EXPERIMENTS):
        known.update((choice.profile.key, choice.profile) for choice in record.spec.backends)
    for _, profile in sorted(known.items()):
        with _backend(profile, home) as backend:
            try:
                names = [*_left(backend, home, store, remove=remove), *_deleted(backend, home, store, remove=remove)]
            except AutotrainError as error:
                yield PlaceLeftovers(profile.name, fault=error.found)
            else:
                yield PlaceLeftovers(profile.name, names)


def _left(backend: object, home: Home, store: Store, *, remove: bool) -> Sequence[str]:
    if not isinstance(backend, LeftoverBackend):
        return ()
    lost = {folder.name for folder in orphans.without_row(home, store)}  # a repair may bring these back
    needed = lost | {record.id for record in store.unfinished()}
    return backend.remove_leftovers(needed) if remove else backend.leftovers(needed)


def _deleted(backend: object, home: Home, store: Store, *, remove: bool) -> Sequence[str]:
    """Trial directories of experiments that are not in the home any more."""
    if not isinstance(backend, TrialFilesBackend):
        return ()
    there = backend.experiments_there()
    known = store.ids()  # asked last: an experiment has its row before anything of it is anywhere else
    gone = sorted(name for name in there if name not in known and not home.experiment(name).exists())
    if remove and gone:
        backend.remove_experiments(gone)
    return [f"trials of {name}, which was deleted ({format_bytes(there[name])})" for name in gone]


@contextlib.contextmanager
def _backend(profile: Profile, home: Home) -> Iterator[object]:
    """The backend of a profile; None for one that cannot be made any more, and so cannot be asked either."""
    try:
        backend = backends.create(profile, BackendContext(home))
    except AutotrainError:
        yield None
        return
    try:
        yield backend
    finally:
        backend.close()
