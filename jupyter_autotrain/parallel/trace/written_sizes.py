"""Sizes that modules write out where they part features into heads or join them again, and where they hold them.

A rank of a tensor axis has some of the heads: `view(batch, -1, self.num_heads, self.head_dim)` must see its own number,
while `view(*shape, -1, self.head_dim)` finds it by itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from math import prod
from operator import mul
from typing import Final

import torch

from jupyter_autotrain.parallel.apply.experts import can_share
from jupyter_autotrain.parallel.apply.products import can_split
from jupyter_autotrain.parallel.graph.graph import EXPERTS, SIZES, WHOLE
from jupyter_autotrain.parallel.trace.internals import Passed

_VIEWS: Final = frozenset((torch.Tensor.view, torch.Tensor.reshape, torch.reshape))
_SPLITS: Final = frozenset((torch.Tensor.split, torch.split))
_NEW: Final = frozenset((torch.zeros, torch.ones, torch.full, torch.empty, torch.Tensor.new_zeros, torch.Tensor.expand))
HEADS: Final = "heads"
ELSEWHERE: Final = ""
"""In the place of an attribute, where a module has the number of heads from elsewhere."""
_WIDTHS: Final = ("dim", "size")
"""Parts of names of attributes that hold how wide a head is, or all of them, and not how many there are."""


class WrittenSizes:
    """Attributes of modules that are sizes of what a tensor axis splits.

    Args:
        model: Its modules are looked up by path.

    Attributes:
        found: Path → attributes.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self.found: dict[str, set[str]] = {}
        self._model = model

    def note(self, path: str, func: Callable[..., Passed], args: Passed, kwargs: Mapping[str, Passed]) -> None:
        """Take on a call of torch in a module's forward pass."""
        if func in _NEW:
            self._note_new(path, _numbers(args))
        elif func in _VIEWS | _SPLITS and args and isinstance(args[0], torch.Tensor):
            given = [*args[1:], *kwargs.values()]
            written = _split if func in _SPLITS else _viewed
            for what, size in written(args[0].shape, given):
                held = self._holding(path, size, heads=what == HEADS)
                self.found.setdefault(path, set()).update(held or ({ELSEWHERE} if what == HEADS else ()))

    def notes(self) -> dict[str, str]:
        """Return what the graph is to keep, with the modules whose weights are not split, and those with experts."""
        whole = [name for name, module in self._model.named_modules() if _has_matrix(module) and not can_split(module)]
        sizes = {path: sorted(attributes) for path, attributes in self.found.items()}
        mixtures = [name for name, module in self._model.named_modules() if can_share(module)]
        found = ((SIZES, sizes), (WHOLE, whole), (EXPERTS, mixtures))
        return {key: json.dumps(value) for key, value in found if value}

    def _note_new(self, path: str, sizes: Sequence[int]) -> None:
        """Take on the heads of a tensor that is made for all of them, as a bias of positions is."""
        for size in sizes[:-1]:
            named = {name for name in self._holding(path, size, heads=True) if "head" in name}
            if named:
                self.found.setdefault(path, set()).update(named)

    def _holding(self, path: str, size: int, *, heads: bool) -> set[str]:
        """Return the attributes of a module that hold a size, maybe of those that count heads."""
        own = vars(self._model.get_submodule(path)).items()
        equal = {name for name, value in own if type(value) is int and value == size}
        return set(filter(_is_no_width, equal)) if heads else equal


def _is_no_width(name: str) -> bool:
    return not any(part in name for part in _WIDTHS)


def _has_matrix(module: torch.nn.Module) -> bool:
    return any(parameter.dim() == 2 for parameter in module.parameters(recurse=False))


def _numbers(given: Sequence[Passed]) -> list[int]:
    """Return sizes that are given one by one, or as one sequence."""
    first = next((item for item in given if isinstance(item, Sequence)), given)
    return [size for size in first if isinstance(size, int)]


def _split(shape: Sequence[int], given: list[Passed]) -> Iterator[tuple[str, int]]:
    """Yield the size of the parts of the last dim, if there is one."""
    if isinstance(given[0], int) and given[-1] in {-1, len(shape) - 1}:
        yield "", given[0]


def _viewed(shape: Sequence[int], given: list[Passed]) -> Iterator[tuple[str, int]]:
    """Yield the number of heads into which a view parts the last dim, or the size to which it joins some, if given."""
    sizes = _numbers(given)
    if not shape or not sizes:
        return
    known = -prod(sizes)
    made = [prod(shape) // known if size == -1 and known > 0 else size for size in sizes]
    if made[-1] == shape[-1]:
        return
    parted = _trailing(made, shape[-1])
    if parted and sizes[-parted] != -1:
        yield HEADS, sizes[-parted]
    if _trailing(shape, made[-1]) and sizes[-1] != -1:
        yield "", sizes[-1]


def _trailing(shape: Sequence[int], size: int) -> int:
    """Return how many last dims together have a size; 0 where none have."""
    products = accumulate(reversed(shape), mul)
    return next((count for count, product in enumerate(products, 1) if product == size), 0)
