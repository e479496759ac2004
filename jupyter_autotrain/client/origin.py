"""Which notebook this is.

JupyterLab puts the path into the kernel's environment, VS Code into the notebook's names; others give none.
"""

from __future__ import annotations

import os
import secrets as randomness
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from jupyter_autotrain.core.origin import Origin

_VARIABLE: Final = "JPY_SESSION_NAME"
_NAMES: Final = ("__vsc_ipynb_file__", "__session__")


def of_notebook(names: Mapping[str, object], environ: Mapping[str, str], folder: str | Path) -> Origin:
    """The notebook that runs here.

    Args:
        names: The notebook's names.
        environ: The kernel's environment.
        folder: Where the kernel was started; a relative path starts there.
    """
    paths = [str(names[name]) for name in _NAMES if names.get(name)]
    path = next(iter(paths), environ.get(_VARIABLE, ""))
    return Origin(str(Path(folder, path)) if path else "", _session())


def of_shell(environ: Mapping[str, str]) -> Origin | None:
    """The notebook that started this shell or script (`!jupyter autotrain ...`); None for any other."""
    path = environ.get(_VARIABLE, "")
    return Origin(path) if Path(path).is_absolute() else None


def here() -> Origin | None:
    """The notebook or interactive session of this process, or that started this script; None if there is none."""
    names = vars(sys.modules["__main__"])
    if "get_ipython" not in names:
        return of_shell(os.environ)
    shell = names["get_ipython"]()
    return of_notebook(names, os.environ, getattr(shell, "starting_dir", "") or Path.cwd())


@cache
def _session() -> str:
    return randomness.token_hex(8)
