"""The program that runs the cells above a cell in a kernel of their own, and then lets that kernel send the cell.

`python -m jupyter_autotrain.mcp.cell_runner FOLDER` reads the request of the folder and leaves the answer there.
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time
from pathlib import Path
from typing import Final

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from jupyter_autotrain.client.agent_request import CellRequest, read_answer, refusal, write_answer
from jupyter_autotrain.errors import AutotrainError

_START_S: Final = 120.0
_CELL: Final = "__import__('jupyter_autotrain.cell.agent_request', fromlist=['answer'])"
_COLOURS: Final = re.compile(r"\x1b\[[0-9;]*m")


def main(folder: Path) -> None:
    """Fulfil the request of a folder; whatever happens, an answer lies there afterwards."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the kernel is ended, too
    try:
        _run(folder, CellRequest.read(folder))
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the answer is what is read of it
        write_answer(folder, refusal(error))


def _run(folder: Path, request: CellRequest) -> None:
    manager = KernelManager(kernel_name=request.kernel)
    environ = {**os.environ, "JPY_SESSION_NAME": request.notebook}
    manager.start_kernel(env=environ, cwd=str(Path(request.notebook).parent))
    try:
        client = manager.blocking_client()
        client.start_channels()
        client.wait_for_ready(timeout=_START_S)
        deadline_s = time.monotonic() + request.grant.time_s
        _execute(client, f"{_CELL}.prepare()", deadline_s, "The kernel")
        for number, source in enumerate(request.earlier, 1):
            _execute(client, source, deadline_s, f"Code cell {number} above the cell", stored=True)
        _execute(client, f"{_CELL}.answer({str(folder)!r})", deadline_s, "The cell")
        if read_answer(folder) is None:
            raise AutotrainError("The kernel has left no answer.", "", "Read output.txt beside the request.")
    finally:
        manager.shutdown_kernel(now=True)


def _execute(client: BlockingKernelClient, source: str, deadline_s: float, what: str, *, stored: bool = False) -> None:
    """Run code in the kernel until a time.

    Raises:
        AutotrainError: It has failed.
        TimeoutError: The time has passed.
    """
    left_s = max(deadline_s - time.monotonic(), 1.0)
    reply = client.execute_interactive(source, store_history=stored, allow_stdin=False, timeout=left_s)
    content = reply["content"]
    if content["status"] != "ok":
        shown = _COLOURS.sub("", f"{content.get('ename', 'Aborted')}: {content.get('evalue', '')}")
        raise AutotrainError(f"{what} has failed: {shown}", "", "Correct the notebook, save it, and ask again.")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
