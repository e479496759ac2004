"""What managers that were killed have left at the places of a home's experiments, such as objects of a cluster."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from jupyter_autotrain import backends
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.leftovers import LeftoverBackend
from jupyter_autotrain.core.profile import Profile
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


def _each(home: Home, store: Store, profiles: Iterable[Profile], *, remove: bool) -> Iterator[PlaceLeftovers]:
    needed = {record.id for record in store.unfinished()}
    known = {profile.key: profile for profile in profiles}
    for record in store.experiments(_MOST_EXPERIMENTS):
        known.update((choice.profile.key, choice.profile) for choice in record.spec.backends)
    for _, profile in sorted(known.items()):
        yield from _of_profile(profile, home, needed, remove=remove)


def _of_profile(profile: Profile, home: Home, needed: Collection[str], *, remove: bool) -> Iterator[PlaceLeftovers]:
    try:
        backend = backends.create(profile, BackendContext(home))
    except AutotrainError:  # what cannot be made any more cannot be asked either
        return
    try:
        if isinstance(backend, LeftoverBackend):
            names = backend.remove_leftovers(needed) if remove else backend.leftovers(needed)
            yield PlaceLeftovers(profile.name, names)
    except AutotrainError as error:
        yield PlaceLeftovers(profile.name, fault=error.found)
    finally:
        backend.close()
