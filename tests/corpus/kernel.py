"""A notebook's kernel: an IPython shell in this process, forked wherever a state shall be used more than once."""

from __future__ import annotations

import asyncio
import importlib
import os
import pkgutil
import secrets
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from IPython.core.interactiveshell import InteractiveShell

from tests.kernel_shell import ForkingKernel, PrintingShell, start

_T = TypeVar("_T")
_WARM = ("capture", "cell", "client", "header", "store", "verbs", "views", "widgets")


class TooLongError(BaseException):
    """A cell ran past its limit; no handler of the notebook catches it."""


@dataclass(frozen=True, slots=True)
class Ran:
    """End of a cell: the type of the error that ended it, or "", its message, and what it printed."""

    error: str
    message: str
    stdout: str


class Shell(PrintingShell):
    """A shell without a front end, which plots in memory."""

    def enable_gui(self, gui: str | None = None) -> None:
        """There is none."""

    def _showtraceback(self, *_: object) -> None:
        """Show nothing: a trial's traceback is not in its stdout."""

    def ask_exit(self) -> None:
        """Go on: a cell that ends the kernel does not end the run."""


class QuietKernel(ForkingKernel):
    """A kernel of such a shell."""

    shell_class = Shell


class Kernel:
    """The shell of one notebook, with the extension loaded."""

    def __init__(self) -> None:
        self._kernel = start(QuietKernel)
        self._loop = asyncio.new_event_loop()
        self.shell: InteractiveShell = self._kernel.shell  # type: ignore[assignment]  # traitlets allow None
        self.sources: list[str] = []
        self.shaken: list[bytearray] = []
        for package in _WARM:  # a fork forgets what it imports, a kernel does not
            _import_all(f"jupyter_autotrain.{package}")
        self.run("%load_ext jupyter_autotrain", limit_s=60)

    def run(self, source: str, limit_s: float) -> Ran:
        """Run a cell here, until its limit."""
        with tempfile.TemporaryFile() as printed:
            with _stdout_into(printed.fileno()):
                reply = _within(limit_s, lambda: self._loop.run_until_complete(self._kernel.run(source)))
            printed.seek(0)
            text = printed.read().decode(errors="replace")
        self.sources.append(source)
        return Ran(str(reply.get("ename", "")), str(reply.get("evalue", "")), text)

    def fork(self, work: Callable[[], None], limit_s: float) -> bool:
        """Do some work in a copy of this process; True when it came to its end in time."""
        sys.stdout.flush()
        child = os.fork()
        if not child:
            _to_the_end(work)
        deadline_s = time.monotonic() + limit_s
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() > deadline_s:
                os.kill(child, signal.SIGKILL)
            time.sleep(0.02)
        return os.waitstatus_to_exitcode(ended[1]) == 0

    def become_another_run(self) -> None:
        """Change what no cell has settled, as another run of the kernel would.

        Global generators that were not seeded get another state, and what is made from now on gets other addresses, by
        which sets of objects are ordered.
        """
        self.shaken = [bytearray(size) for size in range(1, 512) for _ in range(40)][:: secrets.randbelow(5) + 2]
        text = "\n".join(self.sources)
        numpy = sys.modules.get("numpy")
        torch = sys.modules.get("torch")
        if numpy and "random.seed(" not in text:
            numpy.random.seed(None)
        if "seed(" not in text.replace("np.random.seed(", "").replace("numpy.random.seed(", ""):
            importlib.import_module("random").seed()
        if torch and "seed" not in text.replace("random.seed", ""):
            torch.seed()


def _import_all(package: str) -> None:
    module = importlib.import_module(package)
    for found in pkgutil.walk_packages(module.__path__, f"{package}."):
        if not found.name.endswith("__main__"):
            importlib.import_module(found.name)


def _to_the_end(work: Callable[[], None]) -> NoReturn:
    """Do the work and end this process; nothing may unwind into the parent's part of the code."""
    status = 1
    try:
        work()
        status = 0
    except BaseException:  # noqa: BLE001 - the parent learns of it by the status, people by stderr
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        os._exit(status)


def _within(limit_s: float, work: Callable[[], _T]) -> _T:
    def end(*_: object) -> None:
        raise TooLongError

    signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        return work()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


@contextmanager
def _stdout_into(descriptor: int) -> Iterator[None]:
    """Send elsewhere what this process and its children write to stdout."""
    sys.stdout.flush()
    before = os.dup(1)
    os.dup2(descriptor, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(before, 1)
        os.close(before)
