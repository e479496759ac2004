"""Leftovers of trials where they ran: stopped ones, deleted ones, and objects of a cluster."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jupyter_autotrain import backends
from jupyter_autotrain.agent.sizes import format_bytes
from jupyter_autotrain.backends import trial_content
from jupyter_autotrain.client import orphans, outputs
from jupyter_autotrain.core.attempt import KeptCheckpoints
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.capabilities import LeftoverBackend, TrialFilesBackend
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.records import TrialRecord
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Store


def sentences(name: str, trials: Iterable[TrialRecord], directory: Callable[[TrialRecord], Path]) -> tuple[str, ...]:
    """Return a sentence for each place that still has something.

    Args:
        name: The experiment.
        trials: The stopped trials.
        directory: Where a trial's files are here.
    """
    results_bytes: Counter[str] = Counter()
    checkpoints_bytes: Counter[str] = Counter()
    for trial in trials:
        place = str((trial.ref.data.get("host") if trial.ref else "") or trial.placement.backend)
        results_bytes[place] += sum(outputs.sizes(directory(trial)).values())
        kept = KeptCheckpoints.read(directory(trial))
        checkpoints_bytes[place] += kept.size_bytes if kept else 0
    found = []
    for place in sorted(results_bytes):
        parts = []
        if size_bytes := results_bytes[place]:
            parts.append(f"{format_bytes(size_bytes)} of results, which `%autotrain pull {name}` brings")
        if size_bytes := checkpoints_bytes[place]:
            parts.append(f"{format_bytes(size_bytes)} of checkpoints, from which `%autotrain retry {name}` goes on")
        if parts:
            found.append(f"Left on {place}: {'; '.join(parts)}.")
    return tuple(found)


_MOST_EXPERIMENTS = 1000  # the newest, whose profiles are looked at


@dataclass(frozen=True, slots=True)
class PlaceLeftovers:
    """The leftovers of a home at one place.

    Attributes:
        backend: The name of its profile.
        names: What is left there.
        fault: Why that is not known; "" when it is.
    """

    backend: str
    names: Sequence[str] = ()
    fault: str = ""


def find(home: Home, store: Store, profiles: Iterable[Profile] = ()) -> list[PlaceLeftovers]:
    """Return what is left, place by place; places that keep nothing of a home are not asked.

    Args:
        home: The home.
        store: Its store; the profiles of its experiments are looked at.
        profiles: Further ones, such as those that files define now.
    """
    return list(_each(home, store, profiles, remove=False))


def remove(home: Home, store: Store, profiles: Iterable[Profile] = ()) -> list[PlaceLeftovers]:
    """Remove what `find` finds; gives what was removed."""
    return list(_each(home, store, profiles, remove=True))


def remove_trials(home: Home, profiles: Iterable[Profile], experiment_id: str) -> None:
    """Delete the trial directories of an experiment at these places, as far as they answer."""
    for profile in profiles:
        with _backend(profile, home) as backend:
            trial_content.remove(backend, experiment_id)


def _each(home: Home, store: Store, profiles: Iterable[Profile], *, remove: bool) -> Iterator[PlaceLeftovers]:
    """Yield the leftovers of each place that has some, or cannot be asked."""
    known = {profile.key: profile for profile in profiles}
    for record in store.experiments(_MOST_EXPERIMENTS):
        known.update((choice.profile.key, choice.profile) for choice in record.spec.backends)
    for _, profile in sorted(known.items()):
        with _backend(profile, home) as backend:
            try:
                names = [*_left(backend, home, store, remove=remove), *_deleted(backend, home, store, remove=remove)]
            except AutotrainError as error:
                yield PlaceLeftovers(profile.name, fault=error.found)
                continue
        if names:
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
    """Yield the backend of a profile; None for one that cannot be made any more, and so cannot be asked either."""
    try:
        backend = backends.create(profile, BackendContext(home))
    except AutotrainError:
        yield None
        return
    try:
        yield backend
    finally:
        backend.close()
