"""From settings as written to a checked `Header`, or to all faults together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from jupyter_autotrain.core import grid
from jupyter_autotrain.core.matching import closest_match
from jupyter_autotrain.core.space import Choice
from jupyter_autotrain.header import secrets
from jupyter_autotrain.header.document import Document
from jupyter_autotrain.header.faults import (
    Fault,
    KeyPath,
    UnfitError,
    combined_error,
    expected_instead,
    shown,
)
from jupyter_autotrain.header.schema import EXHAUSTIVE_TUNERS, Header

_MOST_FAULTS = 200  # that are explained one by one
_LARGEST_GRID = 1000  # points that a grid may have without `trials:`
_EXPECTED = {
    "model_type": "expected a mapping such as {key: value}",
    "dict_type": "expected a mapping such as {key: value}",
    "tuple_type": "expected a list such as [a, b]",
}

_WORDS = (
    ("Input should be", "expected"),
    ("greater than or equal to", "at least"),
    ("less than or equal to", "at most"),
    ("greater than", "more than"),
)


def check(
    document: Document, backends: Sequence[str] = (), schema: type[Header] = Header, *, dry_run: bool = False
) -> Header:
    """Check settings in the schema's own spelling.

    Args:
        document: The settings, and what is already known to be wrong with them.
        backends: Names of the backends that can be used; empty: any name will do.
        schema: The keys that there are.
        dry_run: True when nothing will be submitted, so that keys that only plan have an effect.

    Raises:
        HeaderError: With all faults.
    """
    faults = [*document.faults, *secrets.in_settings(document)]
    header = None
    try:
        header = schema.model_validate(document.data)
    except ValidationError as error:
        details = error.errors(include_url=False)
        faults += [_fault(detail, document, schema) for detail in details[:_MOST_FAULTS]]
        if len(details) > _MOST_FAULTS:
            location = document.location(tuple(details[_MOST_FAULTS]["loc"]))
            faults.append(Fault(f"and {len(details) - _MOST_FAULTS} faults more", location=location))
    except (ArithmeticError, RecursionError) as error:  # values given in Python: text cannot be so large or deep
        faults.append(Fault(f"a value that cannot be read: {error}", "expected plain settings", "simplify it"))
    if header is not None:
        found_wrong = [*_contradictions(header, backends), *_without_effect(header, document, dry_run=dry_run)]
        faults += [
            Fault(found, expected, action, document.location(path)) for path, found, expected, action in found_wrong
        ]
    if faults or header is None:
        raise combined_error(faults)
    return header


def _fault(detail: Mapping[str, Any], document: Document, schema: type[Header]) -> Fault:
    raw = tuple(detail["loc"])
    context = detail.get("ctx", {})
    path: KeyPath = tuple(part for part in raw if part != "[key]")
    cause = context.get("error")
    if detail["type"] == "extra_forbidden":
        return _unknown(path, document, schema)
    dotted = ".".join(str(part) for part in path)
    if isinstance(cause, UnfitError):
        found = cause.found or shown(detail["input"])
        return Fault(f"{dotted}: {found}", cause.expected, cause.action, document.location(path + cause.at))
    expected = _EXPECTED.get(detail["type"]) or detail["msg"]
    for theirs, ours in _WORDS:
        expected = expected.replace(theirs, ours)
    return Fault(f"{dotted}: {shown(detail['input'])}", expected, _try(path, schema), document.location(path))


def _unknown(path: KeyPath, document: Document, schema: type[Header]) -> Fault:
    *section, key = [str(part) for part in path]
    keys = list(keys_of(section, schema))
    inside = f" in {'.'.join(section)}" if section else ""
    action = "" if closest_match(key, keys) else "see %autotrain help"
    return Fault(f"unknown key {shown(key)}{inside}", expected_instead(key, keys), action, document.location(path))


def _try(path: KeyPath, schema: type[Header]) -> str:
    for part in keys_of(path[:-1], schema).items():
        if part[0] == path[-1] and part[1].examples:
            return f"as in `{part[0]}: {part[1].examples[0]}`"
    return ""


def keys_of(section: Iterable[str | int], schema: type[Header] = Header) -> dict[str, Any]:
    """The fields of a section of the schema by name; empty for what is no section."""
    fields: dict[str, Any] = dict(schema.model_fields)
    for part in section:
        model = _section_of(fields[str(part)].annotation) if str(part) in fields else None
        fields = dict(model.model_fields) if model else {}
    return fields


def _section_of(annotation: object) -> type[BaseModel] | None:
    options = [annotation, *getattr(annotation, "__args__", ())]
    return next((o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), None)


def _contradictions(header: Header, backends: Sequence[str]) -> Iterator[tuple[KeyPath, str, str, str]]:
    """What is wrong although each key alone is right: (path, found, expected, action)."""
    if backends and header.backend not in backends:
        yield ("backend",), f"unknown backend {shown(header.backend)}", expected_instead(header.backend, backends), ""
    if header.resources.gpu_memory and not header.resources.gpus:
        yield ("resources", "gpu_memory"), "gpu_memory without gpus", "expected gpus: 1 or more", "add it"
    for name in header.secrets:
        if name in header.env:
            yield ("env", name), f"{name} is also under secrets:", "expected it once", "remove it from env:"
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


def _without_effect(header: Header, document: Document, *, dry_run: bool) -> Iterator[tuple[KeyPath, str, str, str]]:
    """Keys that would change nothing: (path, found, expected, action)."""
    if header.parallel is not None and not dry_run:
        expected = "expected --dry-run: `parallel:` plans only"
        yield (
            ("parallel",),
            "`parallel:` in a submission",
            expected,
            "run the cell with --dry-run, or call at.plan(...)",
        )
    for name in header.backend_sections:
        is_own = not document.location((name,)).source  # files may hold options of several backends
        if name != header.backend and name in document.data and is_own:
            found = f"options of {name} with backend {shown(header.backend)}"
            yield (name,), found, f"expected options of {header.backend}", f"remove them, or set backend: {name}"


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
