"""Credentials among what is captured: they are named in the header, so that no pickle and no script holds them."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from jupyter_autotrain.agent.credentials import ALLOWED, holds_credential, is_credential
from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.looking import refused_by_name
from jupyter_autotrain.capture.script import TrialScript
from jupyter_autotrain.core.text_format import count, cut
from jupyter_autotrain.errors import CaptureError

_MOST_VALUES = 10_000
_DEEPEST = 8
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class SecretFinding:
    """A credential.

    Attributes:
        where: Where it is, as shown to users.
        name: The name it has there; "" for none.
        variable: The captured variable that holds it; "" where code spells it out.
    """

    where: str
    name: str
    variable: str = ""


def refuse(
    values: Mapping[str, tuple[object, bytes]],
    script: TrialScript,
    not_secrets: Collection[str],
) -> None:
    """Make sure that no text that looks like a credential travels.

    Args:
        values: The captured values by name, each with its pickle.
        script: The script.
        not_secrets: Names whose values are no secrets, whatever they look like.

    Raises:
        CaptureError: Something does; names all of it, but shows no value.
    """
    in_data = [_in_captured(name, value, pickle) for name, (value, pickle) in values.items()]
    everywhere = (*filter(None, in_data), *in_script(script))
    found = [one for one in everywhere if not {one.name, one.variable} & set(not_secrets)]
    if found:
        raise _error(found)


def _in_captured(name: str, value: object, pickle: bytes) -> SecretFinding | None:
    with refused_by_name(name):
        return in_value(name, value, pickle)


def in_value(name: str, value: object, pickle: bytes) -> SecretFinding | None:
    """Return the first credential in a value, or None when there is none.

    It is found by its own form or by the name it has there.
    """
    todo: list[tuple[str, str, object, int]] = [(name, name, value, 0)]
    seen: set[int] = set()
    left = _MOST_VALUES
    while todo and left:
        left -= 1
        where, called, part, depth = todo.pop()
        if isinstance(part, str | bytes):
            if is_credential(called, part):
                return SecretFinding(where, called or name, name)
        elif id(part) not in seen and depth < _DEEPEST:
            seen.add(id(part))
            todo += [(*inner, depth + 1) for inner in islice(_parts(where, called, part), left)]
    if _holds_only_numbers(value):
        return None
    return SecretFinding(name, name, name) if holds_credential(pickle) else None


def _holds_only_numbers(value: object) -> bool:
    """Tell whether a value is an array of numbers wider than a byte, which spell no text.

    Looking through gigabytes takes seconds.
    """
    if looking.module_of(type(value)) != "numpy" or type(value).__name__ != "ndarray":
        return False
    dtype = getattr(value, "dtype", None)
    return getattr(dtype, "kind", "O") in "iufcb" and getattr(dtype, "itemsize", 1) > 1


def _parts(where: str, called: str, value: object) -> Iterator[tuple[str, str, object]]:
    for step, key, item in looking.parts(value):
        yield f"{where}{cut(step, 40)}", key if isinstance(key, str) else called, item


def in_script(script: TrialScript) -> Iterator[SecretFinding]:
    """Yield the credentials that code spells out, at most one a line.

    A line may say that it has none.
    """
    named = _lines_of_credentials(script.tree)
    for number, line in enumerate(script.text.split("\n"), 1):
        if (number in named or holds_credential(line)) and ALLOWED not in line:
            label = "".join(script.source_map[number - 1 : number])
            yield SecretFinding(label or f"line {number} of the script", named.get(number, ""))


def _lines_of_credentials(tree: ast.Module) -> dict[int, str]:
    """Return the lines on which a text looks like a credential, with the name that it has there, or ""."""
    found: dict[int, str] = {}
    for name, constant in _named_texts(tree):
        if is_credential(name, constant.value):
            found.setdefault(constant.lineno, name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and holds_credential(node.value):
            found.setdefault(node.lineno, "")
    return found


def _named_texts(tree: ast.Module) -> Iterator[tuple[str, ast.Constant]]:
    """Yield texts that code gives a name.

    The forms are `key = "..."`, `f(key="...")`, `{"key": "..."}` and `d["key"] = "..."`.
    """
    for node in ast.walk(tree):
        for target, value in _pairs(node):
            if isinstance(value, ast.Constant) and (name := _name_of(target)):
                yield name, value


def _pairs(node: ast.AST) -> Iterable[tuple[ast.AST | str | None, ast.AST | None]]:
    match node:
        case ast.Assign(targets=targets, value=value):
            return [(target, value) for target in targets]
        case ast.AnnAssign(target=target, value=value):
            return [(target, value)]
        case ast.keyword(arg=name, value=value):
            return [(name, value)]
        case ast.Dict(keys=keys, values=values):
            return zip(keys, values, strict=True)
        case ast.arguments(posonlyargs=first, args=others, kwonlyargs=keywords, defaults=defaults):
            last = [*first, *others][-len(defaults) :]
            pairs = [*zip(last, defaults, strict=False), *zip(keywords, node.kw_defaults, strict=True)]
            return [(parameter.arg, value) for parameter, value in pairs]
    return ()


def _name_of(target: ast.AST | str | None) -> str:
    if isinstance(target, str):
        return target
    if isinstance(target, ast.Subscript):
        return _name_of(target.slice)
    if isinstance(target, ast.Constant):
        return target.value if isinstance(target.value, str) else ""
    return str(getattr(target, "id", "") or getattr(target, "attr", ""))


def _row(one: SecretFinding) -> str:
    return f"  {one.where} ({one.name})" if one.name and not one.variable else f"  {one.where}"


def _error(found: Sequence[SecretFinding]) -> CaptureError:
    rows = list(map(_row, found))
    ways = []
    if len(rows) > _SHOWN:
        rows = [*rows[: _SHOWN - 1], f"  and {len(found) - _SHOWN + 1} more"]
    variable = _variable(next((one.name for one in found if one.name), ""))
    variables = list(dict.fromkeys(one.variable for one in found))
    if names := ", ".join(filter(None, variables)):
        ways.append(f"`not_secrets: [{names}]` in the header")
    if "" in variables:
        ways.append(f"`# {ALLOWED}` on the line")
    verb = "looks like a secret" if len(found) == 1 else "look like secrets"
    return CaptureError(
        f"{count(len(found), 'thing')} that would travel {verb}:\n" + "\n".join(rows),
        f'Write `secrets: [{variable}]` in the header and read os.environ["{variable}"] in the cell; '
        "the value comes from your environment and is masked.",
        f"If it is none, say so: {' and '.join(ways)}.",
    )


def _variable(name: str) -> str:
    """Return a name for the environment variable."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"\W+", "_", words).strip("_").upper() or "API_KEY"
