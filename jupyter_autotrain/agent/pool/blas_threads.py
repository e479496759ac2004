"""OpenBLAS starts its threads as it is loaded. In a process that is forked it may not; in a trial it has them again.

The number of threads is that of OpenBLAS: by its variables, at most as many as there are CPUs to use
(`blas_get_cpu_number` in its `driver/others/memory.c`).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from jupyter_autotrain.agent import system

_OWN = "OPENBLAS_NUM_THREADS"
_VARIABLES = (_OWN, "GOTO_NUM_THREADS", "OMP_NUM_THREADS")
_SETTERS = tuple(  # by how it was built; numpy and scipy each bring one of their own
    f"{prefix}openblas_set_num_threads{suffix}" for prefix in ("scipy_", "") for suffix in ("64_", "_64", "")
)


@contextlib.contextmanager
def none_started() -> Iterator[None]:
    """Have OpenBLAS start no threads where it is loaded meanwhile."""
    before = os.environ.get(_OWN)
    os.environ[_OWN] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_OWN]
        else:
            os.environ[_OWN] = before


def loaded() -> list[str]:
    """Return the files of OpenBLAS that this process has loaded."""
    found = (line.split(maxsplit=5)[-1] for line in system.used_files(os.getpid()) if "openblas" in line)
    return sorted({path for path in found if path.startswith("/")})


def start(paths: list[str]) -> None:
    """Let each of these have as many threads as where it is loaded in a trial."""
    asked = [os.environ.get(name, "") for name in _VARIABLES]
    wanted = next((int(text) for text in asked if text.isdigit() and int(text) > 0), None)
    cpus = len(system.usable_cpus())
    number = cpus if wanted is None else min(wanted, cpus)
    if not paths or number == 1:
        return
    import ctypes  # noqa: PLC0415 - only trials with OpenBLAS pay

    for path in paths:
        library = ctypes.CDLL(path)
        setters = [getattr(library, name) for name in _SETTERS if hasattr(library, name)]
        for set_threads in setters[:1]:
            set_threads(number)
