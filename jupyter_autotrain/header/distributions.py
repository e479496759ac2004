"""Converts the values under `search:`, in every spelling, to the distributions of `core.space`.

```
lr: loguniform(1e-4, 1e-1)                              a call
lr: {loguniform: [1e-4, 1e-1]}                          a mapping
lr: {_type: loguniform, _value: [1e-4, 1e-1]}           NNI
lr: {min: 1e-4, max: 1e-1, distribution: log_uniform_values}, {values: [16, 32]}    W&B sweeps
net: {choice: [{_name: mlp, width: choice(32, 64)}, {_name: linear}]}               a choice with its own parameters
batch: [16, 32]                                         a list is a choice
```
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from typing import cast

from jupyter_autotrain.agent.json import JsonValue
from jupyter_autotrain.core.space import Choice, Distribution, NestedSpace, Normal, RandInt, Uniform
from jupyter_autotrain.core.spec import TRIAL_NAMES
from jupyter_autotrain.header import other_names
from jupyter_autotrain.header.document import KeyPath, PlainScalar, UnfitError, expected_instead, resolve, shown
from jupyter_autotrain.header.yaml_reader import load

_CALL = re.compile(r"\s*([A-Za-z_][\w.]*)\s*\((.*)\)\s*", re.DOTALL)
_NAME = re.compile(r"[^\W\d][\w.\-/]*")
_LARGEST = 2**62
_EXAMPLE = "loguniform(1e-4, 1e-1) or choice(32, 64)"

PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "choice": (),
    "randint": ("low", "high"),
    "uniform": ("low", "high"),
    "loguniform": ("low", "high"),
    "quniform": ("low", "high", "q"),
    "qloguniform": ("low", "high", "q"),
    "normal": ("mu", "sigma"),
    "lognormal": ("mu", "sigma"),
    "qnormal": ("mu", "sigma", "q"),
    "qlognormal": ("mu", "sigma", "q"),
}
_SWEEP_NAMES: Mapping[str, str] = {
    "uniform": "uniform", "q_uniform": "quniform", "log_uniform_values": "loguniform",
    "q_log_uniform_values": "qloguniform", "normal": "normal", "q_normal": "qnormal",
    "log_normal": "lognormal", "q_log_normal": "qlognormal",
}  # fmt: skip


def read_name(value: object) -> str:
    """Return a search-space name: it becomes a plain variable of the trial.

    Raises:
        UnfitError: When it cannot be one.
    """
    name = unicodedata.normalize("NFKC", str(value))  # as Python itself reads names
    if not _NAME.fullmatch(name) or len(name) > 100:
        raise UnfitError("expected a name such as lr", "rename it")
    if name in TRIAL_NAMES or name.startswith("__"):
        raise UnfitError("expected a name that trials do not use already", f"rename it, as in {name.strip('_')}_value")
    return name


def read_distribution(value: object) -> Distribution:
    """One parameter's distribution, from any spelling.

    Raises:
        UnfitError: When it is none, or its numbers make no sense.
    """
    if isinstance(value, Choice | RandInt | Uniform | Normal):
        return _checked(value)
    if isinstance(value, str):
        return _from_call(value)
    if isinstance(value, list | tuple):
        return _choice(value)
    if isinstance(value, dict):
        return _from_mapping(value)
    raise UnfitError(f"expected a distribution such as {_EXAMPLE}")


def _from_call(text: str) -> Distribution:
    match = _CALL.fullmatch(text)
    if match is None:
        hint = f"write choice({text}) for one value" if 0 < len(text) <= 20 and "(" not in text else ""
        raise UnfitError(f"expected a distribution such as {_EXAMPLE}", hint)
    name, inner = match.groups()
    arguments = load([(1, f"arguments: [{inner.replace(chr(10), ' ')}]")])
    items = arguments.data.get("arguments")
    if arguments.faults or not isinstance(items, list):
        raise UnfitError(f"expected {_form(name)}", "check the brackets and quotes")
    return _build(name, _keywords(items))


def _keywords(items: list[object]) -> object:
    """Turn `[low=0, high=1]` into a mapping; positional arguments stay a list."""
    pairs = [item.partition("=") for item in items if isinstance(item, PlainScalar) and "=" in item]
    if not pairs or len(pairs) < len(items):
        return items
    return {key.strip(): PlainScalar(text.strip()) for key, _, text in pairs}


def _from_mapping(value: Mapping[str, object]) -> Distribution:
    if "_type" in value:
        if value.keys() - {"_type", "_value"} or "_value" not in value:
            raise UnfitError("expected {_type: NAME, _value: [...]}")
        return _build(str(value["_type"]), value["_value"], ("_value",))
    if "values" in value or "value" in value or "min" in value or "distribution" in value:
        return _from_sweep(value)
    if len(value) != 1:
        raise UnfitError(f"expected one distribution such as {_EXAMPLE}")
    ((name, arguments),) = value.items()
    return _build(name, arguments, (name,))


def _from_sweep(value: Mapping[str, object]) -> Distribution:
    if "values" in value or "value" in value:
        values = value.get("values", [value.get("value")])
        return _choice(values if isinstance(values, list) else [values])
    low = value.get("min")
    high = value.get("max")
    is_whole = type(resolve(low)) is int and type(resolve(high)) is int
    kind = str(value.get("distribution", "int_uniform" if is_whole else "uniform"))
    if kind == "int_uniform":
        return _checked(RandInt(_integer(low), _integer(high) + 1))  # sweeps include both ends
    if kind not in _SWEEP_NAMES:
        raise UnfitError(expected_instead(kind, (*_SWEEP_NAMES, "int_uniform")))
    name = _SWEEP_NAMES[kind]
    numbers = {**value, "low": low, "high": high}
    return _build(name, {key: numbers.get(key) for key in PARAMETERS[name]})


def _build(name: str, arguments: object, at: KeyPath = ()) -> Distribution:
    if name not in PARAMETERS:
        raise UnfitError(_expected_call(name, arguments))
    if name == "choice":
        return _choice(_only_list(arguments), at)
    numbers = _numbers(name, arguments)
    if name == "randint":
        low, high = (0, numbers[0]) if len(numbers) == 1 else numbers
        return _checked(RandInt(_integer(low), _integer(high)))
    make: Callable[..., Distribution] = Normal if name.endswith("normal") else Uniform
    first = _number(numbers[0])
    second = _number(numbers[1])
    q = _number(numbers[2]) if name.startswith("q") else None
    return _checked(make(first, second, log="log" in name, q=q))


def _expected_call(name: str, arguments: object) -> str:
    """Return what was expected instead of an unknown distribution: the call that is meant, where there is one."""
    near = other_names.meant_name(name, PARAMETERS)
    if not near:
        return f"expected one of {', '.join(PARAMETERS)}"
    near, items = other_names.meant_arguments(near, arguments)
    try:
        meant = _build(near, _keywords(items))
    except UnfitError:
        return f"expected {_form(near)}"
    call = other_names.as_call(near, items)
    values = f" ({meant.low} to {meant.high - 1})" if isinstance(meant, RandInt) else ""  # others include `high`
    return f"did you mean `{call}`{values}?" if call else f"expected {_form(near)}"


def _only_list(arguments: object) -> Sequence[object]:
    items = arguments if isinstance(arguments, list | tuple) else [arguments]
    return items[0] if len(items) == 1 and isinstance(items[0], list) else items


def _numbers(name: str, arguments: object) -> list[object]:
    wanted = PARAMETERS[name]
    if isinstance(arguments, dict):
        if arguments.keys() != set(wanted):
            raise UnfitError(f"expected {_form(name)}")
        return [arguments[key] for key in wanted]
    items = list(_only_list(arguments))
    if len(items) != len(wanted) and not (name == "randint" and len(items) == 1):
        is_other_form = len(other_names.meant_arguments(name, items)[1]) < len(items)
        found = f"expected {_form(name)}, found {len(items)} numbers"
        raise UnfitError(_expected_call(name, items) if is_other_form else found)
    return items


def _form(name: str) -> str:
    if name not in PARAMETERS:
        return f"a distribution such as {_EXAMPLE}"
    return f"{name}({', '.join(PARAMETERS[name]) or 'a, b, ...'})"


def _number(value: object) -> float:
    number = resolve(value)
    if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
        raise UnfitError(f"expected a number, found {shown(value)}")
    return float(number)


def _integer(value: object) -> int:
    number = resolve(value)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int) or abs(number) > _LARGEST:
        raise UnfitError(f"expected an integer, found {shown(value)}")
    return number


def _choice(items: Sequence[object], at: KeyPath = ()) -> Choice:
    options = tuple(_option(item, (*at, i)) for i, item in enumerate(items))
    if not options:
        raise UnfitError("expected at least one option")
    return Choice(options)


def _option(item: object, at: KeyPath) -> NestedSpace | JsonValue:
    if isinstance(item, NestedSpace):
        return item
    if isinstance(item, dict) and "_name" in item:
        return NestedSpace(str(item["_name"]), _space(item, at))
    value = resolve(item)
    if isinstance(value, float) and not math.isfinite(value):
        raise UnfitError("expected finite numbers", at=at)
    if value is not None and not isinstance(value, bool | int | float | str | list | dict):
        raise UnfitError("expected text, numbers, true, false or null", at=at)
    return cast("JsonValue", value)


def _space(item: Mapping[str, object], at: KeyPath) -> dict[str, Distribution]:
    found = {}
    for key, value in item.items():
        if key == "_name":
            continue
        try:
            found[read_name(key)] = read_distribution(value)
        except UnfitError as error:
            text = f"{key}: {error.expected}"
            raise UnfitError(text, error.action, at=(*at, key, *error.at)) from None
    return found


def _checked(distribution: Distribution) -> Distribution:
    if isinstance(distribution, RandInt) and not distribution.low < distribution.high:
        raise UnfitError(f"expected low < high, found randint({distribution.low}, {distribution.high})")
    if isinstance(distribution, Uniform):
        _check_bounds(distribution)
    if isinstance(distribution, Normal) and distribution.sigma <= 0:
        raise UnfitError(f"expected sigma > 0, found {distribution.sigma:g}")
    if isinstance(distribution, Uniform | Normal) and distribution.q is not None and distribution.q <= 0:
        raise UnfitError(f"expected q > 0, found {distribution.q:g}")
    return distribution


def _check_bounds(uniform: Uniform) -> None:
    if not uniform.low <= uniform.high:
        raise UnfitError(f"expected low <= high, found {uniform.low:g} and {uniform.high:g}")
    if uniform.log and uniform.low <= 0:
        raise UnfitError(f"expected low > 0 on a logarithmic scale, found {uniform.low:g}")
    if not math.isfinite(uniform.high - uniform.low):
        raise UnfitError("expected low and high less than 1.8e308 apart")
