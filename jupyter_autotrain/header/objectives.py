"""The value of `objective:`: `maximize val_acc`, `maximize max(val_acc)`, `minimize mean(loss, last=5)`."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import BeforeValidator, WithJsonSchema

from jupyter_autotrain.core.matching import closest_match
from jupyter_autotrain.core.objective import Direction, Objective, Summary
from jupyter_autotrain.header.faults import UnfitError, shown

FORM: Final = "expected `maximize METRIC`, `maximize max(METRIC)` or `minimize mean(METRIC, last=5)`"
LARGEST_WINDOW: Final = 1000
SUMMARIES: Final = tuple(str(summary) for summary in Summary)
_DIRECTIONS: Final = {
    "maximize": Direction.MAXIMIZE,
    "max": Direction.MAXIMIZE,
    "minimize": Direction.MINIMIZE,
    "min": Direction.MINIMIZE,
}
_METRIC = r"[^\s,()]{1,100}"
_PLAIN = re.compile(r"[^\s,]{1,100}")
_CALL = re.compile(rf"(\w{{1,20}})\(\s*({_METRIC})\s*(?:,([^()]{{0,40}}))?\)")
_WINDOW = re.compile(r"\s*last\s*=\s*(\d{1,9})\s*")
_PATTERN = (
    r"^\s*(maximize|max|minimize|min)\s+"
    rf"(({'|'.join(SUMMARIES)})\(\s*[^\s,()]+\s*(,\s*last\s*=\s*\d+\s*)?\)|[^\s,]*[^\s,)])\s*$"
)


def read_objective(value: object) -> Objective:
    """The objective that is meant.

    Raises:
        UnfitError: When it cannot be read; names the nearest spelling.
    """
    if isinstance(value, Objective):
        return value
    if isinstance(value, dict):
        if value.keys() - {"metric", "direction"} or "metric" not in value:
            raise UnfitError(FORM)
        word = str(value.get("direction", "maximize"))
        what = str(value["metric"])
    else:
        word, what = [*str(value).split(None, 1), "", ""][:2]
    what = what.strip()
    if call := _CALL.fullmatch(what):
        return _summarized(_direction(word, what), call)
    if not _PLAIN.fullmatch(what) or what.endswith(")"):
        raise UnfitError(FORM)
    return Objective(what, _direction(word, what))


def _direction(word: str, what: str) -> Direction:
    if word in _DIRECTIONS:
        return _DIRECTIONS[word]
    near = closest_match(word, ("maximize", "minimize"))
    raise UnfitError(f"did you mean `{near} {what}`?" if near else FORM)


def _summarized(direction: Direction, call: re.Match[str]) -> Objective:
    name, metric, more = call.groups()
    if name not in SUMMARIES:
        near = closest_match(name, SUMMARIES)
        known = f"expected one of {', '.join(SUMMARIES)} before ({metric})"
        raise UnfitError(f"did you mean `{direction} {near}({metric})`?" if near else known)
    return Objective(metric, direction, Summary(name), None if more is None else _window(name, metric, more))


def _window(name: str, metric: str, more: str) -> int:
    match = _WINDOW.fullmatch(more)
    if match is None or name == Summary.LAST or not 1 <= int(match[1]) <= LARGEST_WINDOW:
        other = Summary.MEAN if name == Summary.LAST else name
        raise UnfitError(
            f"expected how many of the newest values count, at most {LARGEST_WINDOW}",
            f"write `{other}({metric}, last=5)`",
            found=f"{shown(more.strip())} in {name}({metric}, ...)",
        )
    return int(match[1])


Goal = Annotated[
    Objective,
    BeforeValidator(read_objective),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": _PATTERN},
                {"type": "object", "properties": {"metric": {"type": "string"}, "direction": {"type": "string"}}},
            ]
        }
    ),
]
