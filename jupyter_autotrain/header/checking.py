"""From settings as written to a checked `Header`, or to all faults together."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from jupyter_autotrain.core import grid
from jupyter_autotrain.core.space import Choice
from jupyter_autotrain.header import python_environments, secrets
from jupyter_autotrain.header.backend_reader import read_backends
from jupyter_autotrain.header.data_section import missing_here
from jupyter_autotrain.header.document import Document
from jupyter_autotrain.header.faults import Fault, KeyPath, combined_error, expected_instead, shown
from jupyter_autotrain.header.model_faults import validated
from jupyter_autotrain.header.profiles import Profiles
from jupyter_autotrain.header.schema import EXHAUSTIVE_TUNERS, Header

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
    """The header that settings make, and all faults; None where they are too wrong to make one.

    Args:
        document: The settings, and what is already known to be wrong with them.
        schema: The keys that there are.
        profiles: What `backend:` can name.
        is_cell: Whether they are of a cell, whose notebook has the names that `parallel:` plans with.
        folder: The folder that paths of files here are relative to; None: they are not looked for.
    """
    faults = [*document.faults, *secrets.in_settings(document)]
    header, found = validated(schema, document.data, document)
    choices, of_backends = read_backends(document, profiles)
    faults += [*found, *of_backends]
    if header is not None:
        header = header.with_choices(choices)
        found_wrong = [
            *_contradictions(header),
            *python_environments.contradictions(header.environment, folder),
            *_without_effect(header, document, is_cell=is_cell),
        ]
        found_wrong += [] if folder is None else missing_here(header.data, folder)
        faults += [
            Fault(found, expected, action, document.location(path)) for path, found, expected, action in found_wrong
        ]
    return header, faults


def _contradictions(header: Header) -> Iterator[tuple[KeyPath, str, str, str]]:
    """What is wrong although each key alone is right: (path, found, expected, action)."""
    if header.resources.gpu_memory and not header.resources.gpus:
        yield ("resources", "gpu_memory"), "gpu_memory without gpus", "expected gpus: 1 or more", "add it"
    for name in header.secrets:
        if name in header.env:
            yield ("env", name), f"{name} is also under secrets:", "expected it once", "remove it from env:"
    for name in header.notify or ():
        if name not in header.hooks:
            known = expected_instead(name, [*header.hooks]) if header.hooks else "expected names under hooks:"
            yield ("notify",), f"there is no hook {shown(name)}", known, "see %autotrain help hooks"
    yield from _worker_contradictions(header)
    yield from _search_contradictions(header)


def _worker_contradictions(header: Header) -> Iterator[tuple[KeyPath, str, str, str]]:
    needs = header.resources
    workers = needs.workers_per_node
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
    advice = "add `objective: maximize METRIC`"
    if header.search and header.objective is None and header.tuner in {"tpe", "evolution"}:
        yield ("tuner",), f"tuner {header.tuner} without an objective", "expected one to learn from", advice
    if header.early_stop.rule != "none" and header.objective is None and (header.search or header.trial_count > 1):
        yield ("early_stop",), "early_stop without an objective", "expected one to compare trials by", advice
    if header.tuner == "batch" and header.search and not _is_batch(header):
        expected = "expected one `choice` of whole configurations"
        yield ("search",), "tuner batch with another search", expected, "use tuner: grid or random"
    elif header.tuner in EXHAUSTIVE_TUNERS and header.search and header.trials is None:
        points = grid.count(header.search)
        if points > _LARGEST_GRID:
            yield (
                ("search",),
                f"a grid of {min(points, 10**18):,} points",
                f"expected at most {_LARGEST_GRID}",
                "add `trials:`",
            )


def _is_batch(header: Header) -> bool:
    return len(header.search) == 1 and all(isinstance(one, Choice) for one in header.search.values())
