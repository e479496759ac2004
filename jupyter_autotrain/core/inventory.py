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


@dataclass(frozen=True, slots=True)
class AcceleratorPolicy:
    """Which accelerators of a place trials may use, and how many trials share one.

    Attributes:
        max_trials_per_gpu: How many trials may hold one accelerator; the least of all that hold it counts.
        use_active_gpu: Whether to use accelerators that other programs are using.
        gpu_indices: The accelerators of each node that may be used; None: all.
    """

    max_trials_per_gpu: int = 1
    use_active_gpu: bool = False
    gpu_indices: tuple[int, ...] | None = None
