"""A backend in use, and what is known of it."""

from __future__ import annotations

from dataclasses import dataclass

from jupyter_autotrain.manager.job_watcher import JobWatcher
from jupyter_autotrain.manager.resources import ResourceAllocator

_SILENT_S = 20.0


@dataclass(slots=True)
class OpenBackend:
    """A backend in use. Nothing is granted before its inventory is known; for GPUs an old one is read again.

    Attributes:
        unreachable_reason: Why it does not answer just now.
        unusable_reason: Why nothing can be started there; for good when `is_lasting`.
    """

    watcher: JobWatcher
    allocator: ResourceAllocator
    has_inventory: bool = False
    discovering: bool = False
    asked_s: float = 0.0
    discovered_s: float = 0.0
    unreachable_reason: str = ""
    unusable_reason: str = ""
    is_lasting: bool = False

    @property
    def silence(self) -> str:
        """Why it does not answer just now: as it said, or because it says nothing; "" where it answers."""
        return self.unreachable_reason or ("it does not answer" if self.watcher.waited_s > _SILENT_S else "")
