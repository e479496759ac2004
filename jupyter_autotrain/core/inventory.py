"""What a place has to give."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gpu:
    """One accelerator. `busy` is true when a process that is not ours uses it."""

    index: int
    id: str
    name: str = ""
    memory_bytes: int = 0
    memory_free_bytes: int = 0
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Inventory:
    """CPUs, memory and accelerators of a place; `limits` says how limits are enforced there."""

    cpus: float
    memory_bytes: int
    gpus: tuple[Gpu, ...] = ()
    limits: str = ""
