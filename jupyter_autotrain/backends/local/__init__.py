"""The local backend, and what other backends share with it: trials whose directories lie on this machine."""

from jupyter_autotrain.backends.local.backend import LocalBackend

__all__ = ["LocalBackend"]
