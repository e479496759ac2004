"""How the GPUs of one node are joined, from what NVIDIA's driver says of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from jupyter_autotrain.core.devices import Link, LinkKind

_GPU = re.compile(r"GPU(\d+)")
_NVLINK = re.compile(r"NV(\d+)")
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
_NVLINK_BYTES_PER_S: Final = 25e9  # one link, per direction; NVLink 2, 3 and 4 alike (NVIDIA's data sheets)
_MOST_NVLINKS: Final = 18  # of one GPU (H100)
# PCIe x1 of each generation, per direction, after its encoding (PCI-SIG).
_PCIE_X1_BYTES_PER_S: Final = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}


def link_of(topology: str, pcie: Sequence[int] | None = None) -> Link | None:
    """The link by which each GPU of a node reaches the others; that of the worst pair.

    Args:
        topology: The matrix that `nvidia-smi topo -m` prints.
        pcie: Generation and lanes of the GPUs' PCIe; None where they are not known.

    Returns:
        None for a single GPU, and where neither is known.
    """
    pairs = _pairs(topology)
    if not pairs:
        return None
    counts = [_nvlinks(pair) for pair in pairs]
    if all(counts):
        return _nvlink(counts)
    if pcie is None or pcie[0] not in _PCIE_X1_BYTES_PER_S:
        return None
    return Link(LinkKind.SWITCH, _PCIE_X1_BYTES_PER_S[pcie[0]] * pcie[1], 10e-6, efficiency=0.8)


def _pairs(topology: str) -> list[str]:
    """What joins each GPU with each other one, as the driver abbreviates it."""
    rows = [_ESCAPE.sub("", line).split("\t") for line in topology.splitlines()]
    heads = next((row for row in rows if len(row) > 1 and _GPU.fullmatch(row[1].strip())), [])
    columns = [number for number, head in enumerate(heads) if _GPU.fullmatch(head.strip())]
    found = []
    for row in rows:
        if row is not heads and _GPU.fullmatch(row[0].strip()):
            found += [row[column].strip() for column in columns if column < len(row)]
    return [pair for pair in found if pair != "X"]


def _nvlinks(pair: str) -> int:
    match = _NVLINK.fullmatch(pair)
    return int(match[1]) if match else 0


def _nvlink(counts: list[int]) -> Link:
    """Switched where one pair has as many links as it would share with the others, else one bundle per pair."""
    per_pair = min(counts)
    others = round(len(counts) ** 0.5) or 1  # n * (n - 1) pairs
    direct = per_pair * others
    if others > 1 and direct <= _MOST_NVLINKS:
        return Link(LinkKind.FULL, direct * _NVLINK_BYTES_PER_S, 5e-6, efficiency=0.7)
    return Link(LinkKind.SWITCH, per_pair * _NVLINK_BYTES_PER_S, 5e-6, efficiency=0.7)
