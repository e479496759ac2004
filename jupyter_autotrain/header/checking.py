"""From settings as written to a checked `Header`, or to all faults together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jupyter_autotrain.core.profile import BackendChoice, Profile
from jupyter_autotrain.core.space import Choice, count_points
from jupyter_autotrain.header import objectives, search_keys, value_faults
from jupyter_autotrain.header.backend_models import NamedBackend
from jupyter_autotrain.header.document import (
    Document,
    Fault,
    KeyPath,
    PlainScalar,
    SourceLocation,
    combined_error,
    expected_instead,
    shown,
)
from jupyter_autotrain.header.profiles import Profiles
from jupyter_autotrain.header.schema import EXHAUSTIVE_TUNERS, Header
from jupyter_autotrain.header.search_keys import LEARNING
from jupyter_autotrain.header.sections import federated
from jupyter_autotrain.header.sections.data import missing_here
from jupyter_autotrain.header.value_faults import validated

_KEY = "backend"
_CLIENTS = "clients"
_FORMS = "expected a name, a mapping such as {type: ssh, hosts: [gpu1]}, or a list of them"


def read_backends(document: Document, profiles: Profiles) -> tuple[tuple[BackendChoice, ...], list[Fault]]:
    """Return the backends that settings name, in their order, and what is wrong with them."""
    reader = _Reader(document, profiles)
    section = document.data.get("federated")
    is_flower = isinstance(section, dict) and (section.get("engine") == "flower" or "superlink" in section)
    if (clients := document.data.get(_CLIENTS)) and not is_flower:
        of_clients = [reader.item(item, (_CLIENTS,)) for item, _ in _items(clients)]
        return tuple({one[0].profile.name: one[0] for one in of_clients if one}.values()), reader.faults
    read = [reader.item(item, path) for item, path in _items(document.data.get(_KEY, "local"))]
    choices = list(filter(None, read))
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
        """Return the choice that an item stands for; None where it has faults, which are kept."""
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


_LARGEST_GRID = 1000  # points that a grid may have without `trials:`


def check(
    document: Document,
    schema: type[Header] = Header,
    profiles: Profiles = Profiles(),  # noqa: B008 - frozen
    *,
    folder: Path | None = None,
) -> Header:
    """Check settings in the schema's own spelling; the arguments are those of `checked`.

    Raises:
        HeaderError: With all faults.
    """
    header, faults = checked(document, schema, profiles, folder=folder)
    if faults or header is None:
        raise combined_error(faults)
    return header


def checked(
    document: Document, schema: type[Header], profiles: Profiles, *, is_cell: bool = False, folder: Path | None = None
) -> tuple[Header | None, list[Fault]]:
    """Return the header that settings make, and all faults; None where they are too wrong to make one.

    Args:
        document: The settings, and what is already known to be wrong with them.
        schema: The keys that there are.
        profiles: What `backend:` can name.
        is_cell: Whether they are of a cell, whose notebook has the names that `parallel:` plans with.
        folder: The folder that paths of files here are relative to; None: they are not looked for.
    """
    faults = [*document.faults, *value_faults.in_settings(document)]
    header, found = validated(schema, document.data, document)
    choices, of_backends = read_backends(document, profiles)
    faults += [*found, *of_backends]
    if header is not None:
        header = header.with_choices(choices)
        found_wrong = [
            *_contradictions(header),
            *objectives.contradictions(header.environment, folder),
            *_without_effect(header, document, is_cell=is_cell),
        ]
        found_wrong += [] if folder is None else missing_here(header.data, folder)
        faults += [
            Fault(found, expected, action, document.location(path)) for path, found, expected, action in found_wrong
        ]
    return header, faults


def _contradictions(header: Header) -> Iterator[tuple[KeyPath, str, str, str]]:
    """Yield what is wrong although each key alone is right: (path, found, expected, action)."""
    if header.resources.gpu_memory and not header.resources.gpus:
        yield ("resources", "gpu_memory"), "gpu_memory without gpus", "expected gpus: 1 or more", "add it"
    if header.resources.adjacent and max(header.resources.gpus, header.resources.nodes) < 2:
        yield ("resources", "adjacent"), "adjacent with one GPU", "expected gpus or nodes: 2 or more", "remove it"
    for name in header.secrets:
        if name in header.env:
            yield ("env", name), f"{name} is also under secrets:", "expected it once", "remove it from env:"
    for name in header.notify or ():
        if name not in header.hooks:
            known = expected_instead(name, [*header.hooks]) if header.hooks else "expected names under hooks:"
            yield ("notify",), f"there is no hook {shown(name)}", known, "see %autotrain help hooks"
    yield from _worker_contradictions(header)
    yield from _search_contradictions(header)
    keys = {key for key in header.model_fields_set - {"resources"} if getattr(header, key)}
    if header.resources.nodes * header.workers_per_node > 1:
        keys.add("resources")
    yield from federated.contradictions(header.mode, header.clients, header.federated, keys)
    yield from federated.data_contradictions(header.mode, header.clients, header.data)


def _worker_contradictions(header: Header) -> Iterator[tuple[KeyPath, str, str, str]]:
    yield from search_keys.worker_contradictions(header.parallel, header.resources)
    needs = header.resources
    workers = header.workers_per_node or 1
    if needs.gpus % workers:
        near = workers * max(1, round(needs.gpus / workers))
        found = f"{needs.gpus} GPUs for {workers} workers on each node"
        expected = f"expected a multiple of workers_per_node, such as {near}"
        yield ("resources", "gpus"), found, expected, "change gpus or workers_per_node"
    if header.elastic and header.launcher != "torchrun":
        found = f"elastic with launcher {header.launcher}"
        yield ("elastic",), found, "expected launcher: torchrun", "add `launcher: torchrun`, or remove elastic"


def _without_effect(header: Header, document: Document, *, is_cell: bool) -> Iterator[tuple[KeyPath, str, str, str]]:
    """Keys that would change nothing: (path, found, expected, action)."""
    if header.parallel is not None and not is_cell:
        expected = "expected it in the header of a cell, whose notebook has the model"
        yield ("parallel",), "`parallel:` without a cell", expected, "call at.plan(...)"
    chosen = [choice.profile.type for choice in header.choices]
    for name in header.backend_sections:
        is_own = not document.location((name,)).source  # files may hold options of several backends
        if chosen and name not in chosen and name in document.data and is_own:
            found = f"options of {name} with backend {shown(', '.join(chosen))}"
            yield (name,), found, f"expected options of {', '.join(chosen)}", f"remove them, or set backend: {name}"


def _search_contradictions(header: Header) -> Iterator[tuple[KeyPath, str, str, str]]:
    if header.objective is None:
        yield from _without_objective(header)
    tuner = "" if header.tuner is None else header.tuner.name
    if tuner == "batch" and header.search and not _is_batch(header):
        expected = "expected one `choice` of whole configurations"
        yield ("search",), "tuner batch with another search", expected, "use tuner: grid or random"
    elif tuner in EXHAUSTIVE_TUNERS and header.search and header.trials is None:
        points = count_points(header.search)
        if points > _LARGEST_GRID:
            found = f"a grid of {min(points, 10**18):,} points"
            yield ("search",), found, f"expected at most {_LARGEST_GRID}", "add `trials:`"


def _without_objective(header: Header) -> Iterator[tuple[KeyPath, str, str, str]]:
    """Yield what learns from an objective, or compares trials by it, where there is none."""
    advice = "add `objective: maximize METRIC`"
    if header.search and header.tuner is not None and header.tuner.name in LEARNING:
        yield ("tuner",), f"tuner {header.tuner.name} without an objective", "expected one to learn from", advice
    if header.constraints:
        yield ("constraints",), "constraints without an objective", "expected one to search by", advice
    if header.early_stop.rule != "none" and (header.search or header.trial_count > 1):
        yield ("early_stop",), "early_stop without an objective", "expected one to compare trials by", advice


def _is_batch(header: Header) -> bool:
    return len(header.search) == 1 and all(isinstance(one, Choice) for one in header.search.values())
