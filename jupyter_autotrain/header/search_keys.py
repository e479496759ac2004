"""The values of `tuner:` and `constraints:`: how parameters are searched, and what a good trial keeps."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from typing import Annotated, Any, Final, cast

from pydantic import BeforeValidator, WithJsonSchema

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.core.objective import Constraint
from jupyter_autotrain.header.document import UnfitError, expected_instead, resolve, shown

TUNERS: Final = ("tpe", "random", "evolution", "cmaes", "gp", "qmc", "grid", "batch", "pbt")
LEARNING: Final = ("tpe", "evolution", "cmaes", "gp", "pbt")
_OTHER_NAMES: Final = {
    "gridsearch": "grid", "batchtuner": "batch", "gptuner": "gp", "cma-es": "cmaes", "nsga2": "evolution",
    "nsgaii": "evolution", "naiveevolution": "evolution", "sobol": "qmc", "pbttuner": "pbt",
}  # fmt: skip
_GROUP: Final = "jupyter_autotrain.tuners"
_CLASS: Final = re.compile(r"optuna:[A-Za-z]\w{0,80}|optunahub:[\w./-]{1,200}:[A-Za-z]\w{0,80}")
_FORM: Final = "expected a name such as tpe, {name: tpe, n_startup_trials: 20}, or {optuna: GPSampler}"
_BOUND: Final = re.compile(r"\s*([^\s<>=,]{1,100})\s*(<=|>=|<|>)\s*([^\s<>=,]{1,40})\s*")
_BOUND_FORM: Final = "expected `METRIC <= NUMBER` or `METRIC >= NUMBER`"


@dataclass(frozen=True, slots=True)
class TunerChoice:
    """A search algorithm by name, with its own options."""

    name: str
    options: JsonObject = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def read_tuner(value: object) -> TunerChoice:
    """Return the search algorithm that is meant.

    Raises:
        UnfitError: There is none of that name.
    """
    if isinstance(value, TunerChoice):
        return value
    if not isinstance(value, dict):
        return TunerChoice(_name(value))
    options = dict(value)
    if "optuna" in options:
        name = _name(f"optuna:{options.pop('optuna')}")
    elif "optunahub" in options:
        if "class" not in options:
            raise UnfitError("expected {optunahub: PACKAGE, class: CLASS}")
        name = _name(f"optunahub:{options.pop('optunahub')}:{options.pop('class')}")
    elif "name" in options:
        name = _name(options.pop("name"))
    else:
        raise UnfitError(_FORM)
    if options and name in {"grid", "batch"}:
        raise UnfitError(f"expected no options of {name}", found=f"{name} with {', '.join(map(str, options))}")
    return TunerChoice(name, cast("JsonObject", resolve(options)))


def _name(value: object) -> str:
    word = str(value) if isinstance(value, str) else ""
    plugins = [point.name for point in entry_points(group=_GROUP)]
    known = {name.lower(): name for name in plugins} | {name: name for name in TUNERS} | _OTHER_NAMES
    if word.lower() in known:
        return known[word.lower()]
    if _CLASS.fullmatch(word):
        return word
    raise UnfitError(expected_instead(word, (*TUNERS, *plugins)), "any sampler of Optuna: `tuner: {optuna: CLASS}`")


Tuner = Annotated[
    Any,
    BeforeValidator(read_tuner),
    WithJsonSchema({"anyOf": [{"type": "string", "enum": list(TUNERS)}, {"type": "string"}, {"type": "object"}]}),
]


def read_constraints(value: object) -> tuple[Constraint, ...]:
    """Return the constraints that are meant, one or a list.

    Raises:
        UnfitError: One cannot be read.
    """
    items: Sequence[object] = value if isinstance(value, list | tuple) else [value]
    return tuple(_constraint(item, index) for index, item in enumerate(items))


def _constraint(value: object, index: int) -> Constraint:
    if isinstance(value, Constraint):
        return value
    match = _BOUND.fullmatch(value) if isinstance(value, str) and len(value) < 200 else None
    bound = _number(match[3]) if match else None
    if match is None or bound is None:
        raise UnfitError(_BOUND_FORM, "as in `latency_ms <= 20`", found=shown(value), at=(index,))
    return Constraint(match[1], bound, is_upper=match[2].startswith("<"))


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


Constraints = Annotated[
    tuple[Constraint, ...],
    BeforeValidator(read_constraints),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
