"""Access to a cluster, loaded once for each content of a kubeconfig: each load takes a process of its own."""

from __future__ import annotations

import functools
from pathlib import Path

from jupyter_autotrain.backends.kubernetes.access import credentials


def load_once(path: str = "", context: str = "") -> credentials.Access:
    """Return the access, as `kubeconfig.load` gives it; for tests that are not of its renewal."""
    return _of_content(path, context, Path(path).expanduser().read_bytes() if path else b"")


@functools.cache
def _of_content(path: str, context: str, content: bytes) -> credentials.Access:
    return credentials.load(path, context)
