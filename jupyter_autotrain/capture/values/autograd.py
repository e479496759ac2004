"""Tensors that autograd computed: their graph cannot travel, so what made them must be moved into the cell."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from jupyter_autotrain.capture.syntax.history import Binding, History
from jupyter_autotrain.core.text_format import cut

_COMPUTED = "a tensor that autograd computed"
_NODES_AT_MOST = 10_000
_SHOWN = 3
_WIDTH = 60


def reason(tensor: Any) -> str:  # noqa: ANN401 - any tensor
    """Why a tensor cannot travel with what autograd knows of it; "" when it can."""
    return f"{_COMPUTED}, whose graph cannot travel" if tensor.grad_fn is not None else ""


def with_advice(why: str, path: str, namespace: Mapping[str, object], history: History) -> str:
    """Say what such a tensor was computed from and what to move into the cell; other reasons stay as they are.

    Args:
        why: The reason.
        path: How to reach the tensor, such as `losses[0]`.
        namespace: The notebook's globals.
        history: What its cells bound.
    """
    if _COMPUTED not in why:
        return why
    name = path.partition("[")[0].partition(".")[0]
    value = namespace.get(name)
    leaves = _leaves(value, namespace) if name == path else []
    source = f" from {', '.join(leaves)}" if leaves else ""
    return (
        f"{why.replace(_COMPUTED, _COMPUTED + source)}: {_advice(history.last(name), whole=hasattr(value, 'grad_fn'))}"
    )


def _advice(binding: Binding | None, *, whole: bool) -> str:
    """What to do: move the statement, where it seems to be what computed the tensor."""
    if binding is None or not (whole or _computes(binding.node)):
        return "compute it inside the cell, or keep its .detach()"
    return f"move `{cut(' '.join(binding.source.split()), _WIDTH)}` into the cell"


def _computes(node: ast.AST) -> bool:
    """Whether a statement calls something with arguments, as `out = model(x)` does and `losses = []` does not."""
    return any(isinstance(part, ast.Call) and part.args for part in ast.walk(node))


def _leaves(tensor: Any, namespace: Mapping[str, object]) -> list[str]:  # noqa: ANN401 - any value
    """The notebook's names of what a tensor was computed from; a module stands for its parameters."""
    names = dict(_named(namespace))
    todo = [getattr(tensor, "grad_fn", None)]
    seen = set[object]()
    found = dict[str, None]()
    while todo and len(seen) < _NODES_AT_MOST:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        leaf = getattr(node, "variable", None)
        if id(leaf) in names:
            found[names[id(leaf)]] = None
        todo += [earlier for earlier, _ in node.next_functions]
    return sorted(found)[:_SHOWN]


def _named(namespace: Mapping[str, object]) -> Iterator[tuple[int, str]]:
    torch = sys.modules["torch"]
    for name, value in namespace.items():
        if isinstance(value, torch.nn.Module):
            yield from ((id(parameter), name) for parameter in value.parameters())
    for name, value in namespace.items():
        if isinstance(value, torch.Tensor) and not name.startswith("_"):
            yield id(value), name
