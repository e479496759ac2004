"""What a distributed library needs at the end of a cell, so that its process ends, and ends as the cell did."""

from __future__ import annotations

import contextlib
import os
import sys

_LONGEST_S = 10.0


def finalize(code: int) -> None:
    """Leave the process group of PyTorch, and MPI where the cell has failed.

    A process that exits inside of a group is aborted, and an elastic agent would then repeat a finished trial. A rank
    that ends by an exception would wait for all others in `MPI_Finalize`: it exits without it.

    Args:
        code: The exit code of the process.
    """
    torch = sys.modules.get("torch.distributed")
    if torch is not None:
        _leave_group(torch)
    if code and "mpi4py.MPI" in sys.modules:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


def _leave_group(distributed: object) -> None:
    """Bounded in time: a rank that has failed may wait for others that never come."""
    import threading  # noqa: PLC0415 - torch has imported it

    thread = threading.Thread(target=_destroy, args=(distributed,), daemon=True)
    thread.start()
    thread.join(_LONGEST_S)


def _destroy(distributed: object) -> None:
    with contextlib.suppress(Exception):  # whatever the library raises, the cell's outcome is known
        if distributed.is_available() and distributed.is_initialized():  # type: ignore[attr-defined] # torch's module
            distributed.destroy_process_group()  # type: ignore[attr-defined] # as above
