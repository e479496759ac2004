"""What tells a home from all others, also from one at the same path of another machine."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.ownership import make_private


def identity(home: Home) -> str:
    """Twelve hexadecimal digits; made when they are first asked for, and kept in the home.

    Raises:
        StoreError: The home is not its user's alone.
        OSError: They cannot be written.
    """
    with contextlib.suppress(FileNotFoundError):
        return home.identity.read_text(encoding="utf-8")
    make_private(home)
    draft = home.root / f"{home.identity.name}.{os.getpid()}.{threading.get_ident()}.draft"
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_hex(6))
    with contextlib.suppress(FileExistsError):  # another process was first
        home.identity.hardlink_to(draft)
    draft.unlink()
    return home.identity.read_text(encoding="utf-8")
