"""Values of small integer tensors, kept beside the shapes: index tensors decide shapes (graphs, masks)."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils._pytree import tree_any, tree_leaves, tree_map

from jupyter_autotrain.parallel.trace.internals import Passed, tensors_in, without_modes

LARGEST = 1 << 22
"""Elements of the largest tensor whose values are kept."""


RANDOM = frozenset((torch.ops.aten.rand.default, torch.ops.aten.rand.generator))
MEAN = 0.5
"""Stands for one random number between 0 and 1, so that a branch on it takes the likelier course."""


class IntegerValues:
    """Fake integer tensor → its value, for tensors computed from nothing but example inputs of integer type.

    A layer that is dropped at random (`torch.rand([]) < rate`) is taken to be kept, unless it mostly is not.

    A value is used for shapes (which edges, how many) and for integers; never for a branch, since the branch of one
    batch is not that of the next.
    """

    def __init__(self, mode: FakeTensorMode) -> None:
        self._mode = mode
        self._real: dict[int, torch.Tensor] = {}
        self._given: set[int] = set()
        self._alive: list[torch.Tensor] = []

    def record_constant(self, fake: torch.Tensor, real: torch.Tensor) -> None:
        """Keep the value of an example input."""
        exact = not (real.is_floating_point() or real.is_complex() or real.is_meta or isinstance(real, FakeTensor))
        if exact and real.numel() <= LARGEST:
            with unset_fake_temporarily():
                self._real[id(fake)] = real.detach().clone()
            self._given.add(id(fake))

    def is_constant(self, fake: torch.Tensor) -> bool:
        """Return whether a value is known and does not come from the example inputs."""
        return id(fake) in self._real and id(fake) not in self._given

    def numbers(self, fake: torch.Tensor) -> list[int] | None:
        """Return the elements of a one-dimensional tensor, where they are known."""
        real = self._real.get(id(fake))
        if real is None:
            return None
        with without_modes():
            return list(map(int, real.tolist()))

    def of_numbers(self, elements: Sequence[int], source: object) -> torch.Tensor:
        """Return a fake one-dimensional tensor of known elements that were computed from `source`."""
        with without_modes():
            real = torch.tensor(elements, dtype=torch.int64)
            return self._fake(real, source)

    def follow(self, func: Passed, args: Passed, kwargs: Passed, out: Passed) -> None:
        """Compute an op on values when all are known and the results are integers; a random number is its mean."""
        outs = tree_leaves(out)
        if func in RANDOM and out.numel() == 1:
            with unset_fake_temporarily():
                self._keep(out, torch.full(out.shape, MEAN), ())
        elif outs and self._is_followed((args, kwargs), outs):
            for fake, real in zip(outs, tree_leaves(self._compute(func, args, kwargs)), strict=True):
                self._keep(fake, real, (args, kwargs))
        else:
            for fake in outs:
                self._real.pop(id(fake), None)  # what was changed in place is no longer what it was

    def resolve(self, func: Passed, args: Passed, kwargs: Passed) -> Passed:
        """Return the result of an op whose shape or number depends on values, or None when they are not known."""
        if func is torch.ops.aten.index.Tensor:
            return self._index(func, args)
        if not self._known((args, kwargs)):
            return None
        real = self._compute(func, args, kwargs)
        if not isinstance(real, torch.Tensor):
            return None if isinstance(real, bool) and self._is_given((args, kwargs)) else real
        return self._fake(real, (args, kwargs))

    def _index(self, func: Passed, args: Passed) -> Passed:
        """Indexing by a mask is indexing by the places where it is set."""
        places: list[torch.Tensor | None] = []
        for index in args[1]:
            if index is None or index.dtype not in (torch.bool, torch.uint8):
                places.append(index)
            elif id(index) in self._real:
                with unset_fake_temporarily():
                    found = self._real[id(index)].nonzero(as_tuple=True)
                places.extend(self._fake(place, index) for place in found)
            else:
                return None
        return func(args[0], places)

    def _fake(self, real: torch.Tensor, source: object) -> torch.Tensor:
        fake = self._mode.from_tensor(real)
        self._keep(fake, real, source)
        return fake

    def _keep(self, fake: torch.Tensor, real: torch.Tensor, source: object) -> None:
        self._real[id(fake)] = real
        self._alive.append(fake)
        if self._is_given(source):
            self._given.add(id(fake))

    def _is_given(self, tree: object) -> bool:
        return tree_any(lambda leaf: isinstance(leaf, torch.Tensor) and id(leaf) in self._given, tree)

    def _known(self, tree: Passed) -> bool:
        return not tree_any(lambda leaf: isinstance(leaf, torch.Tensor) and id(leaf) not in self._real, tree)

    def _is_followed(self, source: Passed, outs: Sequence[Passed]) -> bool:
        """Return whether to compute an op on values: integers from integers, and what comes of a random number."""
        if not self._known(source):
            return False
        read = tensors_in(source)
        drawn = bool(read) and all(leaf.numel() == 1 for leaf in (*read, *outs) if isinstance(leaf, torch.Tensor))
        return drawn or all(map(_is_exact, outs))

    def _compute(self, func: Passed, args: Passed, kwargs: Passed) -> Passed:
        args, kwargs = tree_map(lambda t: self._real[id(t)] if isinstance(t, torch.Tensor) else t, (args, kwargs))
        with unset_fake_temporarily():
            return func(*args, **kwargs)


def _is_exact(leaf: object) -> bool:
    if not isinstance(leaf, torch.Tensor) or leaf.is_floating_point() or leaf.is_complex():
        return False
    return leaf.numel() <= LARGEST
