"""Credentials among what is captured: they are named in the header, so that no pickle and no script holds them."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.internal_faults import refused_by_name
from jupyter_autotrain.core.credentials import ALLOWED, holds_credential, is_credential
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
    script: tuple[str, ast.Module, Sequence[str]],
    not_secrets: Collection[str],
) -> None:
    """Make sure that nothing that looks like a credential travels.

    Args:
        values: The captured values by name, each with its pickle.
        script: The script's text, the same parsed, and for each line where it comes from.
        not_secrets: Names whose values are no secrets, whatever they look like.

    Raises:
        CaptureError: Something does; names all of it, but shows no value.
    """
    in_data = [_in_captured(name, value, pickle) for name, (value, pickle) in values.items()]
    everywhere = (*filter(None, in_data), *in_script(*script))
    found = [one for one in everywhere if not {one.name, one.variable} & set(not_secrets)]
    if found:
        raise _error(found)


def _in_captured(name: str, value: object, pickle: bytes) -> SecretFinding | None:
    with refused_by_name(name):
        return in_value(name, value, pickle)


def in_value(name: str, value: object, pickle: bytes) -> SecretFinding | None:
    """The first credential in a value, by its own form or by the name it has there; None when there is none."""
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
    """True for an array of numbers wider than a byte, which spell no text; looking through gigabytes takes seconds."""
    if looking.module_of(type(value)) != "numpy" or type(value).__name__ != "ndarray":
        return False
    dtype = getattr(value, "dtype", None)
    return getattr(dtype, "kind", "O") in "iufcb" and getattr(dtype, "itemsize", 1) > 1


def _parts(where: str, called: str, value: object) -> Iterator[tuple[str, str, object]]:
    for key, item in looking.items(value):
        yield f"{where}[{cut(_shown(key), 40)}]", key if isinstance(key, str) else called, item
    for index, item in enumerate(looking.elements(value)):
        yield f"{where}[{index}]", called, item
    if not looking.is_kind(value, type):
        for name, item in looking.own_attributes(value).items():
            yield f"{where}.{name}", str(name), item


def _shown(key: object) -> str:
    return repr(key) if isinstance(key, str | int | float | bytes | tuple) else f"a {type(key).__name__}"


def in_script(text: str, tree: ast.Module, source_map: Sequence[str]) -> Iterator[SecretFinding]:
    """The credentials that code spells out, at most one a line; a line may say that it has none."""
    lines = text.split("\n")
    named: dict[int, str] = {}
    for name, constant in _named_texts(tree):
        if is_credential(name, constant.value):
            named.setdefault(constant.lineno, name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes) and holds_credential(node.value):
            named.setdefault(node.lineno, "")
    for number, line in enumerate(lines, 1):
        if (number in named or holds_credential(line)) and ALLOWED not in line:
            label = source_map[number - 1] if number <= len(source_map) else ""
            yield SecretFinding(label or f"line {number} of the script", named.get(number, ""))


def _named_texts(tree: ast.Module) -> Iterator[tuple[str, ast.Constant]]:
    """Texts that code gives a name: `key = "..."`, `f(key="...")`, `{"key": "..."}`, `d["key"] = "..."`."""
    for node in ast.walk(tree):
        pairs: list[tuple[ast.AST | str | None, ast.AST | None]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign):
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.keyword):
            pairs = [(node.arg, node.value)]
        elif isinstance(node, ast.Dict):
            pairs = list(zip(node.keys, node.values, strict=True))
        elif isinstance(node, ast.arguments):
            pairs = _defaults(node)
        for target, value in pairs:
            if isinstance(value, ast.Constant) and (name := _name_of(target)):
                yield name, value


def _defaults(arguments: ast.arguments) -> list[tuple[ast.AST | str | None, ast.AST | None]]:
    positional = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    last = positional[len(positional) - len(arguments.defaults) :]
    keywords = [argument.arg for argument in arguments.kwonlyargs]
    return [*zip(last, arguments.defaults, strict=True), *zip(keywords, arguments.kw_defaults, strict=True)]


def _name_of(target: ast.AST | str | None) -> str:
    if isinstance(target, str):
        return target
    if isinstance(target, ast.Subscript):
        return _name_of(target.slice)
    if isinstance(target, ast.Constant):
        return target.value if isinstance(target.value, str) else ""
    return str(getattr(target, "id", "") or getattr(target, "attr", ""))


def _error(found: Sequence[SecretFinding]) -> CaptureError:
    rows = [f"  {one.where}" + (f" ({one.name})" if one.name and not one.variable else "") for one in found]
    if len(rows) > _SHOWN:
        rows = [*rows[: _SHOWN - 1], f"  and {len(found) - _SHOWN + 1} more"]
    variable = _variable(next((one.name for one in found if one.name), ""))
    names = ", ".join(dict.fromkeys(one.variable for one in found if one.variable))
    ways = [f"`not_secrets: [{names}]` in the header" if names else ""]
    ways.append(f"`# {ALLOWED}` on the line" if not all(one.variable for one in found) else "")
    verb = "looks like a secret" if len(found) == 1 else "look like secrets"
    return CaptureError(
        f"{count(len(found), 'thing')} that would travel {verb}:\n" + "\n".join(rows),
        f'Write `secrets: [{variable}]` in the header and read os.environ["{variable}"] in the cell; '
        "the value comes from your environment and is masked.",
        f"If it is none, say so: {' and '.join(way for way in ways if way)}.",
    )


def _variable(name: str) -> str:
    """A name for the environment variable."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return re.sub(r"\W+", "_", words).strip("_").upper() or "API_KEY"
