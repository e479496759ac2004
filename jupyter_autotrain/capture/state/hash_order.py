"""Whether a cell's outcome may depend on the order of a set, which differs from one Python process to the next.

Trials of an experiment share a hash seed; a kernel that was started without one has its own, which cannot be read.
Objects without a hash of their own are ordered in a set by their addresses, whatever the hash seed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping

from jupyter_autotrain.capture.differences import Difference, DifferenceKind
from jupyter_autotrain.core.text_format import cut

_LOOKS_AT_ALL = frozenset({"all", "any", "frozenset", "len", "max", "min", "set", "sorted"})
_KEEPS_ORDER = frozenset(
    {"dict.fromkeys", "enumerate", "filter", "iter", "join", "list", "map", "next", "tuple", "zip"}
)
_GIVES_A_SET = frozenset({"difference", "intersection", "symmetric_difference", "union"})
_SAME_EVERYWHERE = (int, float, complex, type(None))
_MOST = 1_000
_SHOWN = 60
_BY_HASH = "that of trials is fixed, this kernel's is its own"
_BY_ADDRESS = "its objects may lie by their addresses, which differ in each process"


def find(
    trees: Iterable[ast.Module], namespace: Mapping[str, object], *, same_seed: bool = False
) -> Iterator[Difference]:
    """Report the first use of such an order in the code that travels.

    Args:
        trees: The code that travels; the cell's own first.
        namespace: The notebook's globals.
        same_seed: The kernel has the trials' hash seed: only sets by address differ.
    """
    for tree in trees:
        order = _ByAddress(tree, namespace) if same_seed else _Order(tree, namespace)
        found = next(order.uses(), None)
        if found is not None:
            why = _BY_ADDRESS if same_seed else _BY_HASH
            text = f"the order of `{cut(ast.unparse(found), _SHOWN)}`: {why}"
            yield Difference(DifferenceKind.NOT_CARRIED, text)
            return


class _Order:
    """The places in some code that look at the order of a set."""

    def __init__(self, tree: ast.Module, namespace: Mapping[str, object]) -> None:
        self.tree = tree
        self.namespace = namespace
        self.sets = {name for node in ast.walk(tree) if (name := self._bound_to_set(node))}
        self.attributes = {name for node in ast.walk(tree) if (name := self._attribute_of_set(node))}

    def uses(self) -> Iterator[ast.expr]:
        """The sets that are gone through in their order, and the calls of `hash`."""
        unordered = {part for node in ast.walk(self.tree) for part in _gone_through_without_order(node)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "hash":
                yield node
            if node not in unordered:
                yield from (part for part in _gone_through(node) if self._is_set(part))

    def _bound_to_set(self, node: ast.AST) -> str:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and self._is_set(node.value):
            return node.targets[0].id
        return ""

    def _attribute_of_set(self, node: ast.AST) -> str:
        """The attribute that an assignment sets to a set, as in `self.parents = set(parents)`."""
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute) and self._is_set(node.value):
            return node.targets[0].attr
        return ""

    def _is_set(self, node: ast.expr) -> bool:
        """Whether an expression is a set whose order depends on hashes of texts, or on addresses of objects."""
        if isinstance(node, ast.Attribute):
            return node.attr in getattr(self, "attributes", ())
        if isinstance(node, ast.Name):
            return node.id in getattr(self, "sets", ()) or _depends_on_hashes(self.namespace.get(node.id))
        if isinstance(node, ast.Set):
            return not all(isinstance(part, ast.Constant) and isinstance(part.value, int) for part in node.elts)
        if isinstance(node, ast.SetComp):
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.Sub | ast.BitXor):
            return self._is_set(node.left)
        return isinstance(node, ast.Call) and self._gives_set(node)

    def _gives_set(self, call: ast.Call) -> bool:
        if isinstance(call.func, ast.Attribute):
            return call.func.attr in _GIVES_A_SET and self._is_set(call.func.value)
        if not (isinstance(call.func, ast.Name) and call.func.id in {"set", "frozenset"} and call.args):
            return False
        given = call.args[0]
        if isinstance(given, ast.Name) and given.id in self.namespace:
            return _holds_texts(self.namespace[given.id])
        return not (isinstance(given, ast.Call) and isinstance(given.func, ast.Name) and given.func.id == "range")


class _ByAddress(_Order):
    """The places that look at the order of a set of objects hashed by their addresses, as far as one can see."""

    def uses(self) -> Iterator[ast.expr]:
        """The sets that are gone through in their order."""
        return (found for found in super().uses() if self._is_by_address(found))

    def _is_by_address(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Attribute):
            return True  # what it holds when the cell runs is not known
        return isinstance(node, ast.Name) and _holds_addresses(self.namespace.get(node.id))


def _holds_addresses(value: object) -> bool:
    if not isinstance(value, set | frozenset):
        return False
    parts = (part for part, _ in zip(value, range(_MOST), strict=False))
    by_address: object = object.__hash__
    return any(type(part).__hash__ is by_address for part in parts)


def _gone_through(node: ast.AST) -> Iterator[ast.expr]:
    """What is taken element by element there."""
    if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
        yield node.iter
    elif isinstance(node, ast.Starred):
        yield node.value
    elif isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        if name in _KEEPS_ORDER or name.endswith((".join", ".array", ".Series", ".DataFrame", ".tensor")):
            yield from node.args
        if isinstance(node.func, ast.Attribute) and node.func.attr == "pop" and not node.args:
            yield node.func.value


def _gone_through_without_order(node: ast.AST) -> Iterator[ast.AST]:
    """The generators and calls inside `sorted(...)` and the like, where no order is left."""
    is_blind = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _LOOKS_AT_ALL
    if isinstance(node, ast.Call) and is_blind:
        for given in node.args:
            yield given
            yield from getattr(given, "generators", ())
    if isinstance(node, ast.SetComp):
        yield from node.generators


def _depends_on_hashes(value: object) -> bool:
    return isinstance(value, set | frozenset) and _holds_texts(value)


def _holds_texts(value: object) -> bool:
    """Whether a collection holds anything but numbers; those hash alike everywhere. Looks at a thousand at most."""
    if isinstance(value, str):
        return len(value) > 1
    if not isinstance(value, list | tuple | set | frozenset | dict):
        return getattr(getattr(value, "dtype", None), "kind", "O") not in "biufc"
    parts = (part for part, _ in zip(value, range(_MOST), strict=False))
    return any(not isinstance(part, _SAME_EVERYWHERE) for part in parts)
