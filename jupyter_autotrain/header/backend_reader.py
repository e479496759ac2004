"""From `backend:` as written to the choices of an experiment; all faults together."""

from __future__ import annotations

from collections.abc import Iterator

from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.header.backend_models import NamedBackend
from jupyter_autotrain.header.document import Document, PlainScalar
from jupyter_autotrain.header.faults import Fault, KeyPath, SourceLocation, shown
from jupyter_autotrain.header.model_faults import validated
from jupyter_autotrain.header.profiles import Profiles

_KEY = "backend"
_FORMS = "expected a name, a mapping such as {type: ssh, hosts: [gpu1]}, or a list of them"


def read_backends(document: Document, profiles: Profiles) -> tuple[tuple[BackendChoice, ...], list[Fault]]:
    """The backends that settings name, in their order, and what is wrong with them."""
    reader = _Reader(document, profiles)
    choices = [choice for item, path in _items(document.data.get(_KEY, "local")) if (choice := reader.item(item, path))]
    if not choices and not reader.faults:
        location = document.location((_KEY,))
        reader.faults.append(Fault("backend: []", _FORMS, "name one, or remove the line", location))
    reader.check_names(choices)
    return tuple(choice for choice, _ in choices), reader.faults


def _items(value: object) -> Iterator[tuple[object, KeyPath]]:
    """Each backend as written, with its path; `a, b` on the magic line is a list too."""
    if isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield item, (_KEY, index)
    elif isinstance(value, str) and "," in value:
        for name in value.split(","):
            yield PlainScalar(name.strip()), (_KEY,)
    else:
        yield value, (_KEY,)


class _Reader:
    """Reads the items of one header's `backend:`."""

    def __init__(self, document: Document, profiles: Profiles) -> None:
        self.document = document
        self.profiles = profiles
        self.faults: list[Fault] = []

    def item(self, item: object, path: KeyPath) -> tuple[BackendChoice, SourceLocation] | None:
        """The choice that an item stands for; None where it has faults, which are kept."""
        location = self.document.location(path)
        choice = None
        if isinstance(item, dict):
            choice = self._inline(item, path) if "type" in item else self._named(item, path)
        elif isinstance(item, str) and item:
            profile = self._profile(str(item), location)
            choice = BackendChoice(profile) if profile else None
        else:
            self.faults.append(Fault(f"backend: {shown(item)}", _FORMS, "", location))
        return (choice, location) if choice else None

    def _named(self, item: dict[str, object], path: KeyPath) -> BackendChoice | None:
        if "name" not in item:
            self.faults.append(self._untyped(item, path))
            return None
        found, faults = validated(NamedBackend, item, self.document, path)
        self.faults += faults
        if found is None:
            return None
        profile = self._profile(found.name, self.document.location((*path, "name")))
        return BackendChoice(profile, at_most=found.at_most, prefer=found.prefer) if profile else None

    def _untyped(self, item: dict[str, object], path: KeyPath) -> Fault:
        fitting = [name for name, model in self.profiles.models.items() if set(item) <= set(model.model_fields)]
        action = f"add `type: {fitting[0]}`" if len(fitting) == 1 else "add `type:`, or `name:` of a profile"
        found = f"{_KEY} without a type and without a name"
        expected = f"expected `type:` with one of {', '.join(self.profiles.types)}"
        return Fault(found, expected, action, self.document.location(path))

    def _inline(self, item: dict[str, object], path: KeyPath) -> BackendChoice | None:
        choice, faults = self.profiles.inline(item, self.document, path)
        self.faults += faults
        return choice

    def _profile(self, name: str, location: SourceLocation) -> Profile | None:
        profile, faults = self.profiles.find(name, location)
        self.faults += faults
        return profile

    def check_names(self, choices: list[tuple[BackendChoice, SourceLocation]]) -> None:
        """Add a fault for each name that an earlier choice has."""
        first: dict[str, SourceLocation] = {}
        for choice, location in choices:
            name = choice.profile.name
            if name in first:
                where = f" (first on {first[name]})" if str(first[name]) else ""
                found = f"two backends are called {shown(name)}{where}"
                self.faults.append(Fault(found, "expected names that differ", "give one a `name:`", location))
            first.setdefault(name, location)
