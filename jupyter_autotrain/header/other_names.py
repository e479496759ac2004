"""Which distribution is meant where a search space is written as in other tools: `int(2, 8)`, `tune.uniform(0, 1)`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.header.document import PlainScalar, looks_secret

_LOG = frozenset({"log=True", "log=true"})
_LONGEST = 60
_MEANT: Mapping[str, str] = {
    "int": "randint", "integer": "randint", "range": "randint", "randrange": "randint", "intuniform": "randint",
    "uniformint": "randint", "float": "uniform", "double": "uniform", "real": "uniform", "number": "uniform",
    "log": "loguniform", "logfloat": "loguniform", "reciprocal": "loguniform", "loguniformvalues": "loguniform",
    "categorical": "choice", "gridsearch": "choice", "grid": "choice", "list": "choice", "options": "choice",
    "values": "choice", "oneof": "choice", "enum": "choice", "sample": "choice",
    "discreteuniform": "quniform", "qrandint": "quniform", "qlograndint": "qloguniform",
    "gauss": "normal", "gaussian": "normal", "randn": "normal",
}  # fmt: skip
"""Words of Python, NumPy, Optuna, Ray Tune, Hyperopt, W&B and scikit-optimize, as `_word` writes them."""


def meant_name(name: str, known: Iterable[str]) -> str:
    """Return the known distribution that an unknown name means, or is most like; "" for none."""
    word = _word(name)
    return _MEANT.get(word, "") or closest_match(word, known)


def _word(name: str) -> str:
    """Return `int` for `trial.suggest_int` and for `IntDistribution`."""
    bare = name.rpartition(".")[2].replace("_", "").lower()
    return bare.removeprefix("suggest").removesuffix("distribution")


def meant_arguments(name: str, arguments: object) -> tuple[str, list[object]]:
    """Return the distribution and its arguments, without a label before them and without Optuna's `log=True`."""
    given = _listed(arguments)
    items = [item for item in given if str(item) not in _LOG]
    if len(items) < len(given) and name in {"uniform", "quniform"}:
        name = name.replace("uniform", "loguniform")
    return name, items[1:] if _has_label(items, name) else items


def _listed(arguments: object) -> Sequence[object]:
    if isinstance(arguments, Mapping):
        return [PlainScalar(f"{key}={value}") for key, value in arguments.items()]
    return arguments if isinstance(arguments, list | tuple) else [arguments]


def _has_label(items: Sequence[object], name: str) -> bool:
    """Tell whether the first argument names the parameter, as in `hp.uniform("lr", 0, 1)`."""
    if len(items) < 2 or isinstance(items[0], PlainScalar) or not isinstance(items[0], str):
        return False
    return name != "choice" or isinstance(items[1], list)


def as_call(name: str, arguments: Sequence[object]) -> str:
    """Return a call as one would write it; "" where it is long or may hold a secret."""
    items = list(map(_written, arguments))
    text = f"{name}({', '.join(items)})"
    may_hold_secret = any(looks_secret(word.strip("'[]")) for item in items for word in item.split(", "))
    return "" if len(text) > _LONGEST or may_hold_secret else text


def _written(item: object) -> str:
    if isinstance(item, list):
        return f"[{', '.join(map(_written, item))}]"
    is_quoted = isinstance(item, str) and not isinstance(item, PlainScalar)
    return repr(item) if is_quoted else str(item)
