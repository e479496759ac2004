"""What a home is called at places that several homes share."""

from __future__ import annotations

import hashlib
import platform

from jupyter_autotrain.core import system
from jupyter_autotrain.core.backend import BackendContext


def home_name(context: BackendContext) -> str:
    """A short name of a home on a machine, so that several may use one account at a place."""
    name = system.machine_name() or platform.node()
    return hashlib.sha256(f"{name}\n{context.home.root}".encode()).hexdigest()[:12]
