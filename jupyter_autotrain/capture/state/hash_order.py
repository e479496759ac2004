"""Notice that a cell looks at the order of a set, which differs from one Python process to the next.

Trials of an experiment share a hash seed; a kernel that was started without one has its own, which cannot be read.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice

from jupyter_autotrain.capture.differences import Difference, not_carried
from jupyter_autotrain.capture.syntax.nodes import called
from jupyter_autotrain.core.text_format import cut

_LOOKS_AT_ALL = frozenset({"all", "any", "frozenset", "len", "max", "min", "set", "sorted"})
_KEEPS_ORDER = frozenset({
    "DataFrame", "Series", "array", "enumerate", "filter", "fromkeys", "iter", "join", "list", "map", "next", "pop",
    "tensor", "tuple", "zip",
})  # fmt: skip
_GIVES_A_SET = frozenset({"difference", "intersection", "symmetric_difference", "union"})
_MOST = 1_000


def find(trees: Iterable[ast.Module], namespace: Mapping[str, object]) -> Iterator[Difference]:
    """Report the first use of such an order in the code that travels; the cell's own comes first."""
    for tree in trees:
        assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign)]
        sets = [node.targets[0] for node in assigned if _is_set(node.value, (), namespace)]
        names = {getattr(target, "id", getattr(target, "attr", "")) for target in sets}
        for part in _taken_in_order(tree):
            if called(part) == "hash" or _is_set(part, names, namespace):
                shown = cut(ast.unparse(part), 60)
                yield not_carried(f"the order of `{shown}`: that of trials is fixed, this kernel's is its own")
                return


def _taken_in_order(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield what some code takes element by element, and the calls of `hash`."""
    as_a_whole = set[ast.AST]()
    for node in ast.walk(tree):  # what is around a node comes before it
        if isinstance(node, ast.SetComp) or called(node) in _LOOKS_AT_ALL:
            for part in (node, *getattr(node, "args", ())):
                as_a_whole.update((part, *getattr(part, "generators", ())))
        match node:
            case _ if node in as_a_whole:
                continue
            case ast.For(iter=value) | ast.AsyncFor(iter=value) | ast.comprehension(iter=value) | ast.Starred(value):
                yield value
            case ast.Call(func=ast.Attribute(value=owner, attr="pop"), args=[]):
                yield owner
            case ast.Call(func=ast.Name(id="hash")):
                yield node
            case ast.Call(args=given) if called(node) in _KEEPS_ORDER:
                yield from given


def _is_set(node: ast.expr, names: Collection[str], namespace: Mapping[str, object]) -> bool:
    """Tell whether an expression is a set whose order is not the same everywhere."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            value = namespace.get(name) if isinstance(node, ast.Name) else None
            return name in names or (isinstance(value, set | frozenset) and _varies(value))
        case ast.Set(elts=parts):
            return not all(isinstance(part, ast.Constant) and isinstance(part.value, int) for part in parts)
        case ast.BinOp(left=inner, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor()):
            return _is_set(inner, names, namespace)
        case ast.Call(func=ast.Attribute(value=inner, attr=name)) if name in _GIVES_A_SET:
            return _is_set(inner, names, namespace)
        case ast.Call(args=[given, *_]) if called(node) in {"set", "frozenset"}:
            return called(given) != "range" and _varies(namespace.get(getattr(given, "id", "")))
    return isinstance(node, ast.SetComp)


def _varies(value: object) -> bool:
    """Tell whether a collection may hold anything but numbers, which hash alike everywhere."""
    if not isinstance(value, list | tuple | set | frozenset | dict):
        return getattr(getattr(value, "dtype", None), "kind", "O") not in "biufc"
    return not all(isinstance(part, int | float | complex | None) for part in islice(value, _MOST))
