"""Effects of an import that trials would share if it were made once for all: such an import is left to each of them."""

from __future__ import annotations

import os
import signal
import site
import sys
import sysconfig

from jupyter_autotrain.agent import system
from jupyter_autotrain.agent.system import this_process

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE)
_SHOWS_THINGS = "IPython.core.display_functions"  # a trial has it show them elsewhere, as it is imported

_MAIN = "__mp_main__"  # another name that multiprocessing gives to `__main__`


def installed_folders() -> tuple[str, ...]:
    """Return the folders of the standard library and of installed packages; what lies elsewhere is the user's own."""
    found = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
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
        self._descriptors = this_process.open_files()
        self._handlers = [signal.getsignal(number) for number in _SIGNALS]
        self._folder = os.getcwd()

    def fault(self) -> str:
        """Return why what was imported since cannot be shared; "" where it can."""
        modules = sys.modules.keys() - self._modules
        own = self._outside(modules)
        handlers = [signal.getsignal(number) for number in _SIGNALS]
        found = [
            (this_process.has_threads(), "it starts threads"),
            (bool(system.children(os.getpid())), "it starts processes"),
            (has_cuda(), "it starts CUDA"),
            (this_process.open_files() != self._descriptors, "it keeps files open"),
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
