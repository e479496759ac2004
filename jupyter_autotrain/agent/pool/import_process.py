"""A copy of a warm process that makes the imports, seen by the process that it was forked from.

It tells of each line by line: `begin NAME`, `unsuitable WHY` at its end, or `ready`, when it takes its parent's place.

An import with effects that trials would share, were it made once for all, is left to each of them.
"""

from __future__ import annotations

import contextlib
import os
import signal
import site
import sys
import sysconfig

from jupyter_autotrain.agent import system
from jupyter_autotrain.agent.system import process_identity

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE)
_SHOWS_THINGS = "IPython.core.display_functions"  # a trial has it show them elsewhere, as it is imported

_MAIN = "__mp_main__"  # another name that multiprocessing gives to `__main__`


def installed_folders() -> tuple[str, ...]:
    """Return the folders of the standard library and of installed packages; what lies elsewhere is the user's own."""
    found = list(map(sysconfig.get_path, ("stdlib", "platstdlib", "purelib", "platlib")))
    found += site.getsitepackages()
    if site.ENABLE_USER_SITE:
        found.append(site.getusersitepackages())
    return tuple(f"{os.path.abspath(folder)}/" for folder in dict.fromkeys(found))


class ImportEffects:
    """A look at the process before an import.

    Attributes:
        folders: What `installed_folders` gives.
    """

    def __init__(self) -> None:
        self.folders = installed_folders()
        self._modules = set(sys.modules)
        self._descriptors = process_identity.open_files()
        self._handlers = list(map(signal.getsignal, _SIGNALS))
        self._folder = os.getcwd()

    def fault(self) -> str:
        """Return why what was imported since cannot be shared; "" where it can."""
        modules = sys.modules.keys() - self._modules
        own = self._outside(modules)
        handlers = list(map(signal.getsignal, _SIGNALS))
        found = [
            (process_identity.has_threads(), "it starts threads"),
            (bool(system.children(os.getpid())), "it starts processes"),
            (has_cuda(), "it starts CUDA"),
            (process_identity.open_files() != self._descriptors, "it keeps files open"),
            (handlers != self._handlers, "it changes how signals are handled"),
            (os.getcwd() != self._folder, "it changes the working folder"),
            (_SHOWS_THINGS in modules, "it shows things in notebooks"),
            (bool(own), f"it imports code of your own: {own}"),
        ]
        return next((words for is_so, words in found if is_so), "")

    def _outside(self, modules: set[str]) -> str:
        """Return a module whose file is not an installed one; "" where there is none."""
        for name in sorted(modules - {_MAIN}):
            file = getattr(sys.modules[name], "__file__", None)
            if isinstance(file, str) and os.path.isabs(file) and not file.startswith(self.folders):
                return name
        return ""


def has_cuda() -> bool:
    """Tell whether PyTorch has begun to use a GPU in this process."""
    cuda = sys.modules.get("torch.cuda")
    return cuda is not None and bool(cuda.is_initialized())


_PART_BYTES = 1 << 16


class ImportProcess:
    """The copy.

    Args:
        pid: Its pid.
        reader: The pipe that it tells through.

    Attributes:
        fd: That pipe.
        name: The import that it is making.
        fault: Why that cannot be made for all.
        is_ready: It has made all, and goes on as the warm process.
    """

    def __init__(self, pid: int, reader: int) -> None:
        self.pid = pid
        self.fd = reader
        self.name = ""
        self.fault = ""
        self.is_ready = False
        self._text = b""
        os.set_blocking(reader, False)

    def has_ended(self) -> bool:
        """Take what it has told; return True when it tells no more."""
        while True:
            try:
                part = os.read(self.fd, _PART_BYTES)
            except BlockingIOError:
                return False
            if not part:
                self.fault = self.fault or "its import ends the process"
                return True
            *lines, self._text = (self._text + part).split(b"\n")
            for line in lines:
                self._take(line.decode(errors="replace"))

    def _take(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "begin":
            self.name = rest
        elif word == "unsuitable":
            self.fault = rest
        elif word == "ready":
            self.is_ready = True

    def end(self) -> None:
        """End it, unless it is ready."""
        os.close(self.fd)
        if not self.is_ready:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


class Teller:
    """The other end of the pipe, in the copy.

    Args:
        writer: The pipe.
    """

    def __init__(self, writer: int) -> None:
        self._writer = writer

    def begin(self, name: str) -> None:
        """Tell of an import before it is made."""
        self._tell(f"begin {name}")

    def unsuitable(self, why: str) -> None:
        """Tell why it cannot be made for all."""
        self._tell(f"unsuitable {' '.join(why.split())}")

    def ready(self) -> None:
        """Tell that all are made."""
        self._tell("ready")
        os.close(self._writer)

    def _tell(self, line: str) -> None:
        with contextlib.suppress(BrokenPipeError):  # its parent was killed: it takes its place all the same
            os.write(self._writer, f"{line}\n".encode())
