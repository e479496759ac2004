"""The local backend, and what other backends share with it: trials whose directories lie on this machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jupyter_autotrain.backends.local.backend import LocalBackend as LocalBackend


def __getattr__(name: str) -> object:
    if name != "LocalBackend":
        raise AttributeError(name)
    # Options and states are read without it.
    from jupyter_autotrain.backends.local.backend import LocalBackend  # noqa: PLC0415 - see above

    return LocalBackend
