"""Parts of a cluster that a plan may use while the other devices stay idle.

Of equal devices: fewer of the outermost parts, down to one, then fewer inside that one; and fewer inside of each part.
Of several kinds: fewer of each, down to none. Small clusters have every such part; of larger ones those are taken whose
counts divide well, since all of them would be too many to search.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from jupyter_autotrain.core.cluster import ClusterSpec, joined, of_part
from jupyter_autotrain.core.cluster_figures import Level
from jupyter_autotrain.core.devices import LinkKind, presets

SMALL = 16  # devices, or parts of a level, up to which every count is looked at


def subsets(cluster: ClusterSpec, batch: int = 1) -> list[ClusterSpec]:
    """Return parts of a cluster without the whole of it; no two are alike.

    Args:
        cluster: All devices.
        batch: Samples; counts that divide it are looked at in large clusters too.
    """
    mixed = len(cluster.groups) > 1
    found = _of_kinds(cluster, batch) if mixed else (*_of_levels(cluster, batch), *_of_count(cluster))
    unique = {(part.kinds, part.levels): part for part in found if part.devices < cluster.devices}
    return list(unique.values())


def _of_levels(cluster: ClusterSpec, batch: int) -> Iterator[ClusterSpec]:
    """Yield the parts of a cluster with one kind of device."""
    for sizes in _sizes(cluster.levels, batch, small=cluster.devices <= SMALL):
        yield _shrunk(cluster, sizes)


def _sizes(levels: tuple[Level, ...], batch: int, *, small: bool) -> Iterator[tuple[int, ...]]:
    """Yield sizes of the levels, innermost first."""
    full = tuple(level.size for level in levels)
    if small:
        sizes = product(*(range(1, size + 1) for size in full))
        for found in sizes:
            if not _is_scattered(found, full):
                yield found
        return
    yield from ((*full[:-1], count) for count in _counts(full[-1], batch))
    yield from ((count, *full[1:]) for count in _counts(full[0], batch)[-1:])
    if len(full) > 1:
        for inner in _sizes(levels[:-1], batch, small=math.prod(full[:-1]) <= SMALL):
            yield *inner, 1


def _is_scattered(sizes: tuple[int, ...], full: tuple[int, ...]) -> bool:
    """Tell whether there is one device in each of several parts that have more."""
    return sizes[0] == 1 < full[0] and math.prod(sizes) > 1


def _counts(size: int, batch: int) -> list[int]:
    """Return counts below a size, rising."""
    if size <= SMALL:
        return list(range(1, size))
    dividing = [count for count in range(1, size) if batch % count == 0]
    return sorted({dividing[-1], 2 ** ((size - 1).bit_length() - 1)})


def _shrunk(cluster: ClusterSpec, sizes: tuple[int, ...]) -> ClusterSpec:
    """Return a cluster of one kind with other sizes of its levels."""
    pairs = list(zip(cluster.levels, sizes, strict=True))
    kept = tuple(replace(level, size=size) for level, size in pairs if size > 1)
    alone = Level("card", 1, replace(cluster.levels[0].link, kind=LinkKind.SINGLE))
    levels = kept or (alone,)
    (device, _) = cluster.kinds[0]
    count = math.prod(sizes)
    return replace(cluster, kinds=((device, count),), levels=levels, name=_named(device.name, levels))


def _named(device: str, levels: tuple[Level, ...]) -> str:
    return "x".join([*(str(level.size) for level in reversed(levels)), device])


def _of_count(cluster: ClusterSpec) -> Iterator[ClusterSpec]:
    """Yield the smaller counts of a cluster given by a count without a form.

    Fewer devices are as they would be by themselves: 9xH100 has a chassis of 8.
    """
    device = cluster.kinds[0][0].name
    is_counted = device in presets() and cluster.name == f"{cluster.devices}x{device}"
    if not is_counted or cluster.devices > 2 * SMALL:
        return
    if of_part(cluster.name).levels != cluster.levels:  # with other links, say
        return
    for count in range(1, cluster.devices):
        fewer = of_part(f"{count}x{device}")
        yield replace(cluster, kinds=((cluster.kinds[0][0], count),), levels=fewer.levels, name=f"{count}x{device}")


def _of_kinds(cluster: ClusterSpec, batch: int) -> Iterator[ClusterSpec]:
    """Yield the parts of a cluster with several kinds: of each kind none, some or all."""
    small = cluster.devices <= SMALL
    choices = [_of_kind(cluster, index, batch, small=small) for index in range(len(cluster.kinds))]
    for chosen in product(*choices):
        parts = [part for part in chosen if part is not None]
        if parts:
            yield replace(parts[0] if len(parts) == 1 else joined(parts), name="+".join(map(str, parts)))


def _of_kind(cluster: ClusterSpec, index: int, batch: int, *, small: bool) -> list[ClusterSpec | None]:
    """Return the choices for one kind alone.

    They are all of it, parts of it where the cluster is small, and none of it.
    """
    kind = cluster.kinds[index]
    levels = cluster.groups[index]
    whole = ClusterSpec((kind,), levels, _named(kind[0].name, levels), cluster.reserved_bytes)
    return [whole, *(subsets(whole, batch) if small else ()), None]
