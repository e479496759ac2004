"""Combining what the parts of an expression may be into what the whole may be."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import PurePath

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.files import path_methods
from jupyter_autotrain.capture.files.bindings import UNKNOWN, PossibleValues, merged
from jupyter_autotrain.capture.files.live_values import is_container, scalars
from jupyter_autotrain.capture.files.path_methods import ANY, MOST


def single(values: PossibleValues) -> object:
    """What one entry of a container holds; several values stand together."""
    return values[0] if len(values) == 1 else values


def of_method(value: object, name: str, arguments: list[PossibleValues]) -> PossibleValues:
    """What a method of one value may give."""
    if isinstance(value, str | PurePath):
        return path_methods.called(str(value), name, arguments)
    if looking.is_kind(value, Mapping) and name in {"items", "keys", "values"}:
        pairs = list(looking.items(value))
        found = {"items": [[key, held] for key, held in pairs], "keys": [key for key, _ in pairs]}
        return [found.get(name, [held for _, held in pairs])]
    return [value] if is_container(value) else UNKNOWN


def filled(templates: PossibleValues, hole: re.Pattern[str], given: list[PossibleValues]) -> PossibleValues:
    """Texts with holes, filled in order as far as the numbers agree."""
    found: list[PossibleValues] = []
    for text in scalars(templates):
        fixed = hole.split(str(text))
        fills = given if len(given) == len(fixed) - 1 else [UNKNOWN] * (len(fixed) - 1)
        pieces: list[PossibleValues] = [[fixed[0]]]
        for fill, rest in zip(fills, fixed[1:], strict=True):
            pieces += [fill, [rest]]
        found.append(combined(pieces))
    return merged(found)


def combined(parts: Iterable[PossibleValues], join: Callable[..., str] | None = None) -> PossibleValues:
    """The parts put together in all ways; a part of which nothing is known may be anything.

    What lies in a folder that can be no path of the notebook (a temporary one) can be none either.
    """
    choices = [_as_texts(part) for part in parts]
    if choices and not choices[0] and (join or all(text.startswith("/") for text in [*choices, ["-"]][1])):
        return []
    filled_choices = [choice or [ANY] for choice in choices]
    products = itertools.islice(itertools.product(*filled_choices), MOST)
    return merged([[join(*texts) if join else "".join(texts) for texts in products if texts]])


def _as_texts(values: PossibleValues) -> list[str]:
    return [str(one) for one in scalars(values)]


def added(left: PossibleValues, right: PossibleValues) -> PossibleValues:
    """`+`: texts are put together (with each text of a table), lists hold what both hold; numbers are not known."""
    if any(isinstance(one, list | tuple | set) for one in (*left, *right)):
        return merged([left, right])
    if not any(isinstance(one, str) for one in scalars([*left, *right])):
        return UNKNOWN
    return combined([left, right])
