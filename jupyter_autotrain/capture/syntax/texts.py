"""Names in texts: what `eval("a + b")`, `df.query("a > @limit")` and `globals()["a"]` read without naming it in code.

One rule: every name in the texts of such a call that the notebook binds travels. Where no text is known before the code
runs, the call is reported.
"""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from jupyter_autotrain.capture import looking
from jupyter_autotrain.capture.syntax.nodes import arguments_of, called, keywords_of

MAIN = "__main__"
Known = Callable[[ast.expr], object]
"""Gives the value of an expression where that is known, else None."""
_RUN_CODE = frozenset({"eval", "exec", "run", "runctx", "timeit", "repeat", "Timer"})
_READ_NAMES = frozenset({
    "build_design_matrices", "dmatrices", "dmatrix", "evaluate", "from_formula", "gee", "glm", "gls", "glsar", "logit",
    "mixedlm", "mnlogit", "model_matrix", "negativebinomial", "ols", "phreg", "poisson", "probit", "quantreg", "rlm",
    "wls",
})  # fmt: skip
_OF_OBJECTS = frozenset({"delattr", "setattr"})
_BINDS = _OF_OBJECTS | {"setdefault", "update"}
_JOINS = frozenset({"Path", "PurePath", "join"})
_NAME = re.compile(r"(?<![.\w])[^\W\d]\w*")
_AT_NAME = re.compile(r"@\s*([^\W\d]\w*)")


@dataclass(frozen=True, slots=True)
class TextReading:
    """The names that an expression reads by its texts.

    Attributes:
        names: Names it may read.
        unknown: The call, for people, where its texts are not known; "" when they are.
        used: `globals()`, `__main__` and the like, whose use is explained by this one.
        binds: Whether it may bind names.
    """

    names: frozenset[str] = frozenset()
    unknown: str = ""
    used: tuple[ast.expr, ...] = ()
    binds: bool = False


def reading(node: ast.AST, known: Known) -> TextReading | None:
    """Return the names that an expression reads by its texts; None for one that is not known to read any."""
    if isinstance(node, ast.Attribute) and is_main(node.value, known) and node.attr != "__dict__":
        is_read = isinstance(node.ctx, ast.Load)
        return TextReading(frozenset({node.attr} if is_read else ()), used=(node.value,), binds=not is_read)
    parts = _parts(node)
    scopes = tuple(part for part in parts if is_scope(part, known) or is_main(part, known))
    if scopes:
        return _by_scope(node, scopes, parts, known)
    return _by_call(node, known) if isinstance(node, ast.Call) else None


def is_scope(node: ast.AST, known: Known) -> bool:
    """Tell whether an expression is `globals()`, `locals()`, `vars()`, or the dictionary of the module `__main__`."""
    match node:
        case ast.Call(func=ast.Name(id="globals" | "locals" | "vars"), args=[], keywords=[]):
            return True
        case ast.Call(func=ast.Name(id="vars"), args=[module]) | ast.Attribute(value=module, attr="__dict__"):
            return is_main(module, known)
    return False


def is_main(node: ast.AST, known: Known) -> bool:
    """Tell whether an expression is the module `__main__`, whose names are those of the notebook."""
    match node:
        case ast.Subscript(value=ast.Attribute(attr="modules"), slice=name):
            return _is_name_of_main(name)
        case ast.Call(func=ast.Attribute(attr="import_module") | ast.Name(id="import_module"), args=[name]):
            return _is_name_of_main(name)
        case ast.Name():
            value = known(node)
            return looking.is_kind(value, types.ModuleType) and looking.attribute(value, "__name__") == MAIN
    return False


def names_of_main(statements: Sequence[ast.stmt]) -> Iterator[str]:
    """Yield the names that some statements give the module `__main__`."""
    for node in (node for one in statements for node in ast.walk(one)):
        match node:
            case ast.Import(names=aliases):
                yield from (alias.asname or alias.name for alias in aliases if alias.name == MAIN)
            case ast.Assign(targets=targets, value=value) if is_main(value, lambda _: None):
                yield from (target.id for target in targets if isinstance(target, ast.Name))


def text_of(node: ast.expr, named: Callable[[str], object], unknown: str | None = None) -> object:
    """Return the value of a literal, a known name, an item or attribute of one, or of texts and paths put together.

    It is None where the value is not known.

    Args:
        node: The expression.
        named: Gives the value of a name.
        unknown: What stands for an unknown part of a longer text; None makes all of it unknown.
    """
    match node:
        case ast.Constant(value=found):
            return found
        case ast.Name(id=name):
            return named(name)
        case ast.Subscript(value=owner, slice=ast.Constant(value=key)) | ast.Attribute(value=owner, attr=key):
            held = text_of(owner, named)
            held = vars(held) if looking.is_kind(held, type) else held
            is_plain = type(held) is dict or type(held) is types.MappingProxyType
            return (held if is_plain else looking.own_attributes(held)).get(key)  # type: ignore[attr-defined]  # a mapping
    separator, parts = _parts_of_text(node)
    texts = [_as_text(text_of(part, named, unknown), unknown) for part in parts]
    return None if None in texts or not texts else separator.join(filter(None, texts))


def _parts_of_text(node: ast.expr) -> tuple[str, Sequence[ast.expr]]:
    """Return the parts that a text or a path is put together of, and what stands between them."""
    match node:
        case ast.JoinedStr(values=parts):
            return "", parts
        case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
            return "", [inner]
        case ast.BinOp(left=left, op=ast.Add() | ast.Div() as operator, right=right):
            return "/" if isinstance(operator, ast.Div) else "", [left, right]
        case ast.Call(func=ast.Attribute(value=owner, attr="joinpath"), args=parts):
            return "/", [owner, *parts]
        case ast.Call(args=parts) if called(node) in _JOINS:
            return "/", parts
    return "", []


def _as_text(value: object, unknown: str | None) -> str | None:
    return str(value) if looking.is_kind(value, (str, int, float, PurePath)) else unknown


def _is_name_of_main(node: ast.AST) -> bool:
    match node:
        case ast.Name(id="__name__") | ast.Constant(value="__main__"):
            return True
    return False


def _parts(node: ast.AST) -> list[ast.expr]:
    """Return the expressions that an item, a comparison, an operation or a call consists of."""
    match node:
        case ast.Subscript(value=owner, slice=key):
            return [owner, key]
        case ast.Compare(left=left, comparators=others):
            return [left, *others]
        case ast.BinOp(left=left, op=ast.Mod(), right=right):
            return [left, right]
        case ast.Call(func=function):
            owner = function.value if isinstance(function, ast.Attribute) else function
            inner = owner.args if isinstance(owner, ast.Call) else []  # Template("$name").substitute(globals())
            return [owner, *inner, *arguments_of(node)]
    return []


def _by_scope(node: ast.AST, scopes: tuple[ast.expr, ...], parts: Sequence[ast.expr], known: Known) -> TextReading:
    """Read what takes a name, by its text, of all names of the notebook."""
    is_store = isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load)
    is_asked = called(node) in _BINDS
    if is_store or (is_asked and (parts[0] in scopes or called(node) in _OF_OBJECTS)):
        return TextReading(used=scopes, binds=True)
    names = frozenset(name for part in parts if part not in scopes for name in _names_in(part, known, _NAME))
    return TextReading(names, "" if names else ast.unparse(node), scopes, binds=called(node) in _RUN_CODE)


def _by_call(call: ast.Call, known: Known) -> TextReading | None:
    """Read calls that run code or formulas with the caller's names."""
    kind = _kind_of(call)
    if not kind:
        return None
    given = [*call.args[:1], *keywords_of(call, "expr", "formula", "source")]
    pattern = _AT_NAME if kind == "query" else _NAME
    names = frozenset(found for part in given for found in _names_in(part, known, pattern))
    if kind == "query":
        return TextReading(names)
    if kind == "formula":
        return TextReading(names - _columns(call, known))
    is_known = all(_is_code(part, known) for part in given)
    return TextReading(names, "" if is_known else ast.unparse(call), binds=True)


def _kind_of(call: ast.Call) -> str:
    """Return what the text of a call is: "code", a "query" of a table, a "formula"; "" for another call."""
    name = called(call)
    owner = getattr(getattr(call.func, "value", None), "id", "")
    is_of_table = isinstance(call.func, ast.Attribute) and owner not in {"pd", "pandas"}
    if name == "query" or (name == "eval" and is_of_table):
        return "query"
    if name in {"eval", "exec"}:
        return "" if len(call.args) + len(call.keywords) > 1 else "code"  # else it has names of its own
    if name == "run":
        return "code" if owner in {"cProfile", "profile"} else ""
    is_formula = name in _READ_NAMES or keywords_of(call, "formula")
    return "formula" if is_formula else ""


def _is_code(node: ast.expr, known: Known) -> bool:
    """Tell whether the text of some code is known, or it is no text."""
    if isinstance(node, ast.Call) and called(node) == "compile" and node.args:
        node = node.args[0]
    value = known(node)
    return isinstance(value, str) or callable(value)


def _columns(call: ast.Call, known: Known) -> set[str]:
    """Return the names of the columns of the table that a formula is about."""
    tables = [*call.args[1:2], *keywords_of(call, "data")]
    columns = looking.attribute(known(tables[0]), "columns") if tables else None
    return set(map(str, columns)) if isinstance(columns, Iterable) else set()


def _names_in(node: ast.expr, known: Known, pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield the names in the texts that an expression holds, as far as these are known."""
    for part in ast.walk(node):
        value = known(part) if isinstance(part, ast.expr) else None
        if isinstance(value, str):
            yield from pattern.findall(value)
