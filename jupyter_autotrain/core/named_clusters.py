"""Clusters by name: `cluster="lab"` means the devices of a backend. A higher layer, which knows backends, is asked.

Every trial imports this module, so it imports next to nothing.
"""

from __future__ import annotations

from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from jupyter_autotrain.core.cluster import ClusterSpec


class Hooks:
    """What a higher layer sets.

    Attributes:
        find: The cluster of a backend's name; None where no backend has it.
    """

    def __init__(self) -> None:
        self.find: Callable[[str], ClusterSpec | None] = _none


def _none(_: str) -> None:
    return None


hooks = Hooks()
