"""Notice that a cell looks at the order of a set, which differs from one Python process to the next.

Trials of an experiment share a hash seed; a kernel that was started without one has its own, which cannot be read.
Objects without a hash of their own are ordered in a set by their addresses, whatever the hash seed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

from jupyter_autotrain.capture.differences import Difference, not_carried
from jupyter_autotrain.capture.syntax.nodes import called
from jupyter_autotrain.core.text_format import cut

_LOOKS_AT_ALL = frozenset({"all", "any", "frozenset", "len", "max", "min", "set", "sorted"})
_KEEPS_ORDER = frozenset({
    "DataFrame", "Series", "array", "enumerate", "filter", "fromkeys", "hash", "iter", "join", "list", "map", "next",
    "pop", "tensor", "tuple", "zip",
})  # fmt: skip
_GIVES_A_SET = frozenset({"difference", "intersection", "symmetric_difference", "union"})
_MOST = 1_000


def find(
    trees: Iterable[ast.Module], namespace: Mapping[str, object], *, same_seed: bool = False
) -> Iterator[Difference]:
    """Report the first use of such an order in the code that travels.

    Args:
        trees: The code that travels; the cell's own first.
        namespace: The notebook's globals.
        same_seed: The kernel has the trials' hash seed: only sets by address differ.
    """
    why = "its objects may lie by their addresses, which differ in each process"
    why = why if same_seed else "that of trials is fixed, this kernel's is its own"
    for part in (part for tree in trees for part in _uses(tree, namespace)):
        is_live = isinstance(part, ast.Name) and _holds(namespace.get(part.id), by_address=True)
        if not same_seed or is_live or isinstance(part, ast.Attribute):
            yield not_carried(f"the order of `{cut(ast.unparse(part), 60)}`: {why}")
            return


def _uses(tree: ast.Module, namespace: Mapping[str, object]) -> Iterator[ast.expr]:
    """Yield the sets that some code goes through in their order, and the calls of `hash`."""
    names = set[str]()
    blind = set[ast.AST]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and _is_set(node.value, (), namespace):
            names.add(str(getattr(node.targets[0], "id", getattr(node.targets[0], "attr", ""))))
        blind |= _looked_at_as_a_whole(node)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) == "hash":
            yield node
        elif node not in blind:
            for part in _gone_through(node):
                if _is_set(part, names, namespace):
                    yield part


def _looked_at_as_a_whole(node: ast.AST) -> set[ast.AST]:
    """Return the parts of an expression whose order it does not depend on."""
    found = set[ast.AST]()
    if isinstance(node, ast.SetComp) or called(node) in _LOOKS_AT_ALL:
        for part in (node, *getattr(node, "args", ())):
            found.update((part, *getattr(part, "generators", ())))
    return found


def _gone_through(node: ast.AST) -> list[ast.expr]:
    """Return the expressions that are taken element by element there."""
    match node:
        case ast.For(iter=value) | ast.AsyncFor(iter=value) | ast.comprehension(iter=value) | ast.Starred(value=value):
            return [value]
        case ast.Call(func=ast.Attribute(value=owner, attr="pop"), args=[]):
            return [owner]
        case ast.Call(args=given) if called(node) in _KEEPS_ORDER:
            return given
    return []


def _is_set(node: ast.expr, names: Iterable[str], namespace: Mapping[str, object]) -> bool:
    """Return whether an expression is a set whose order depends on hashes of texts, or on addresses of objects."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            value = namespace.get(name) if isinstance(node, ast.Name) else None
            return name in names or (isinstance(value, set | frozenset) and _holds(value))
        case ast.Set(elts=parts):
            return not all(isinstance(part, ast.Constant) and isinstance(part.value, int) for part in parts)
        case ast.BinOp(left=inner, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor()):
            return _is_set(inner, names, namespace)
        case ast.Call(func=ast.Attribute(value=inner, attr=name)):
            return name in _GIVES_A_SET and _is_set(inner, names, namespace)
        case ast.Call(args=[given, *_]) if called(node) in {"set", "frozenset"}:
            known = isinstance(given, ast.Name) and given.id in namespace
            return _holds(namespace[given.id]) if known else called(given) != "range"  # type: ignore[attr-defined]  # a name
    return isinstance(node, ast.SetComp)


def _holds(value: object, *, by_address: bool = False) -> bool:
    """Return whether a collection holds anything but numbers, which hash alike everywhere, or objects by address."""
    if isinstance(value, str):
        return len(value) > 1
    if not isinstance(value, list | tuple | set | frozenset | dict):
        return not by_address and getattr(getattr(value, "dtype", None), "kind", "O") not in "biufc"
    parts = list(islice(value, _MOST))
    plain: object = object.__hash__
    if by_address:
        return any(type(part).__hash__ is plain for part in parts)
    return not all(isinstance(part, int | float | complex | type(None)) for part in parts)
