"""The batches of one rank: of each batch of the user's loader its own samples, one microbatch at a time."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import torch
from torch.utils._pytree import tree_map
from torch.utils.data import DataLoader, IterableDataset

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.apply.ranks import Ranks
from jupyter_autotrain.parallel.apply.recipe import Recipe


@dataclass(frozen=True, slots=True)
class Cut:
    """The cut of batches: into `ranks * microbatches` equal parts, of which `rank` has `microbatches` in a row."""

    rank: int
    ranks: int
    microbatches: int

    @property
    def parts(self) -> int:
        """Return into how many parts a batch is cut."""
        return self.ranks * self.microbatches

    def slices(self, samples: int) -> Iterator[slice]:
        """Yield this rank's microbatches of a batch of so many samples, which the parts divide."""
        size = samples // self.parts
        for part in range(self.rank * self.microbatches, (self.rank + 1) * self.microbatches):
            yield slice(part * size, (part + 1) * size)

    def filled(self, samples: int) -> int:
        """Return the number of samples after some are repeated, so that the parts are equal."""
        return math.ceil(samples / self.parts) * self.parts


class RankBatches:
    """Batch sampler that gives a rank its microbatches; the last batch repeats samples where it cannot be cut evenly.

    Args:
        batches: The user's batch sampler, which draws the same on all ranks.
        cut: How its batches are cut.
    """

    def __init__(self, batches: Any, cut: Cut) -> None:  # noqa: ANN401 - a sampler of torch, or of the user
        self.batches = batches
        self._cut = cut
        self.skipped = 0

    def __iter__(self) -> Iterator[list[Any]]:
        for batch in islice(self.batches, self.skipped, None):
            indices = list(batch)
            filled = list(islice(cycle(indices), self._cut.filled(len(indices))))
            for part in self._cut.slices(len(filled)):
                yield filled[part]

    def __len__(self) -> int:
        return len(self.batches) * self._cut.microbatches


@dataclass(frozen=True, slots=True)
class Place:
    """Where a loader stands: whole batches that were given of this epoch, and its generators as the epoch began."""

    batches: int
    generators: tuple[torch.Tensor, ...]


class RankLoader:
    """A loader that gives a rank its microbatches, on its device; other attributes are those of the user's loader.

    Args:
        loader: Gives whole batches, or what `drawn` does.
        cut: How batches are cut.
        device: Where tensors go.
        drawn: The batch sampler of the loader, where it cuts the batches.
    """

    def __init__(self, loader: Any, cut: Cut, device: torch.device, drawn: RankBatches | None = None) -> None:  # noqa: ANN401 - any iterable
        self._loader = loader
        self._cut = cut
        self._device = device
        self._drawn = drawn
        self._given = 0
        self._skipped = 0
        self._began: tuple[torch.Tensor, ...] | None = None

    def __iter__(self) -> Iterator[Any]:
        skipped = self._skipped
        yield from self._epoch(skipped)
        if skipped and self._given == skipped * self._cut.microbatches:
            yield from self._epoch(0)  # the checkpoint was at the end of an epoch
        self._began = None

    def __len__(self) -> int:
        return len(self._loader) * (1 if self._drawn else self._cut.microbatches)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the user's loader has
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._loader, name)

    @property
    def place(self) -> Place:
        """Where it stands, for a checkpoint; the same for any number of ranks and microbatches."""
        if self._began is None:
            return Place(0, self._states())
        return Place(self._given // self._cut.microbatches, self._began)

    @place.setter
    def place(self, place: Place) -> None:
        """Go on from there at the next iteration."""
        self._skipped = place.batches
        for generator, state in zip(self._generators(), place.generators, strict=True):
            generator.set_state(state)

    def _epoch(self, skipped: int) -> Iterator[Any]:
        """Yield the microbatches of an epoch after some whole batches."""
        self._began = self._states()
        self._given = skipped * self._cut.microbatches
        self._skipped = 0
        for part in self._parts(skipped):
            self._given += 1
            yield _moved(part, self._device)

    def _parts(self, skipped: int) -> Iterator[Any]:
        if self._drawn:
            self._drawn.skipped = skipped
            yield from self._loader
            return
        for batch in islice(self._loader, skipped, None):
            yield from _parts(batch, self._cut)

    def _generators(self) -> list[torch.Generator]:
        """Return the generators that the loader and its samplers draw from, each once."""
        samplers = [self._loader, *_samplers(self._drawn.batches)] if self._drawn else []
        found = [getattr(sampler, "generator", None) for sampler in samplers]
        return list(dict.fromkeys(generator for generator in found if generator is not None))

    def _states(self) -> tuple[torch.Tensor, ...]:
        return tuple(generator.get_state() for generator in self._generators())


def cut_of(recipe: Recipe, ranks: Ranks) -> Cut:
    """Return how a rank cuts batches."""
    return Cut(ranks.sample_rank, ranks.samples, recipe.microbatches)


def microbatches_of(batch: Any, recipe: Recipe, ranks: Ranks) -> list[Any]:  # noqa: ANN401 - whatever the user has
    """Return a rank's microbatches of a whole batch, on its device."""
    return [_moved(part, ranks.device) for part in _parts(batch, cut_of(recipe, ranks))]


def rank_loader(loader: Any, recipe: Recipe, ranks: Ranks) -> tuple[Any, str]:  # noqa: ANN401 - any iterable of batches
    """Return the loader of a rank, and what a reader must know of its last batch.

    Raises:
        PlanError: Its batches cannot be cut evenly.
    """
    cut = cut_of(recipe, ranks)
    is_drawn = isinstance(loader, DataLoader) and not isinstance(loader.dataset, IterableDataset)
    if not is_drawn or loader.batch_sampler is None:
        return RankLoader(loader, cut, ranks.device), ""
    size = getattr(loader.batch_sampler, "batch_size", None)
    if size is not None and size % cut.parts:
        raise PlanError(
            f"A batch of {size} samples cannot be cut into {cut.parts} equal parts.",
            f"{cut.ranks} ranks with {cut.microbatches} microbatches each.",
            f"Use a batch size that {cut.parts} divides, or plan for this one.",
        )
    _draw_alike(loader, ranks)
    drawn = RankBatches(loader.batch_sampler, cut)
    return RankLoader(_rebuilt(loader, drawn), cut, ranks.device, drawn), _uneven(loader, size, cut)


def _draw_alike(loader: DataLoader[Any], ranks: Ranks) -> None:
    """Let samplers that would draw from the global generator, which differs from rank to rank, draw the same."""
    for sampler in _samplers(loader.batch_sampler):
        if getattr(sampler, "generator", 0) is None:
            seed = ranks.same(int(torch.randint(2**62, ()).item()))
            sampler.generator = torch.Generator().manual_seed(seed)


def _samplers(batches: Any) -> list[Any]:  # noqa: ANN401 - a sampler of torch, or of the user
    return [batches, getattr(batches, "sampler", None)]


def _rebuilt(loader: DataLoader[Any], batches: RankBatches) -> DataLoader[Any]:
    kept = ("num_workers", "collate_fn", "pin_memory", "timeout", "worker_init_fn", "multiprocessing_context")
    more = ("generator", "prefetch_factor", "persistent_workers")
    words = {name: getattr(loader, name) for name in (*kept, *more)}
    return DataLoader(loader.dataset, batch_sampler=batches, **words)


def _uneven(loader: DataLoader[Any], size: int | None, cut: Cut) -> str:
    """Return what happens to a last batch that cannot be cut evenly."""
    try:
        samples = len(loader.sampler)  # type: ignore[arg-type] # not every sampler has a length
    except TypeError:
        return ""
    last = samples % size if size and not getattr(loader, "drop_last", False) else 0
    if last % cut.parts == 0:
        return ""
    return (
        f"The last batch of an epoch has {last} samples, which {cut.parts} parts do not divide: "
        f"{cut.filled(last) - last} of them count twice. drop_last=True leaves it out."
    )


def _parts(batch: Any, cut: Cut) -> Iterator[Any]:  # noqa: ANN401 - whatever the loader gives
    """Cut the tensors of a whole batch along their first dim; some samples are repeated where it cannot be even."""
    samples = _samples(batch)
    filled = torch.arange(cut.filled(samples)) % max(1, samples)
    for part in cut.slices(len(filled)):
        yield _mapped(functools.partial(_taken, samples=samples, indices=filled[part]), batch)


def _taken(value: Any, samples: int, indices: torch.Tensor) -> Any:  # noqa: ANN401 - whatever the loader gives
    is_cut = isinstance(value, torch.Tensor) and value.ndim > 0 and len(value) == samples
    return value[indices.to(value.device)] if is_cut else value


def _samples(batch: Any) -> int:  # noqa: ANN401 - whatever the loader gives
    sizes: list[int] = []

    def note(value: Any) -> Any:  # noqa: ANN401 - as above
        if isinstance(value, torch.Tensor) and value.ndim > 0:
            sizes.append(len(value))
        return value

    _mapped(note, batch)
    return sizes[0] if sizes else 0


def _mapped(change: Any, batch: Any) -> Any:  # noqa: ANN401 - whatever the loader gives
    """Return a batch with its leaves changed; mappings of other types, as transformers makes them, become dicts."""
    plain = dict(batch) if isinstance(batch, Mapping) else batch
    return tree_map(change, plain)


def _moved(batch: Any, device: torch.device) -> Any:  # noqa: ANN401 - whatever the loader gives
    if device.type == "cpu":
        return batch
    return _mapped(
        lambda value: value.to(device, non_blocking=True) if isinstance(value, torch.Tensor) else value, batch
    )
