"""A kernel that forks: ipykernel's own application, kernel and shell without sockets, threads and streams."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import SimpleNamespace

import ipykernel_launcher
from ipykernel.ipkernel import IPythonKernel
from ipykernel.kernelapp import IPKernelApp
from ipykernel.zmqshell import ZMQInteractiveShell
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from jupyter_client.session import Session
from traitlets.config import Config


class QuietValue(DisplayHook):
    """The value of a cell's last line is kept, not printed: a trial does not print it either."""

    def __call__(self, result: object = None) -> None:
        if result is not None:
            self.update_user_ns(result)


class Text(DisplayPublisher):
    """Prints what has no picture, as a trial does."""

    def publish(self, data: Mapping[str, object], *_: object, **__: object) -> None:
        if not any(kind.startswith("image/") for kind in data):
            print(data.get("text/plain", ""))  # noqa: T201 - so it is compared


class PrintingShell(ZMQInteractiveShell):
    """A kernel's shell that prints what others send to a front end."""

    displayhook_class = QuietValue
    display_pub_class = Text
    _showtraceback = InteractiveShell._showtraceback


class ForkingKernel(IPythonKernel):
    """A kernel without a front end."""

    shell_class = PrintingShell

    async def run(self, source: str) -> dict[str, object]:
        """Run a cell in the running event loop, as for a front end; gives the reply."""
        return await self.do_execute(source, silent=False)


class _Application(IPKernelApp):
    """The part of a kernel's start that matters here."""

    def init_kernel(self) -> None:
        thread = SimpleNamespace(parent_thread=None)
        self.kernel = self.kernel_class.instance(
            parent=self, session=Session(), shell_channel_thread=thread, log=self.log, profile_dir=self.profile_dir
        )

    def _nothing(self) -> None:
        pass

    init_poller = init_connection_file = init_sockets = init_heartbeat = _nothing
    write_connection_file = log_connection_info = init_io = init_signal = _nothing


def start(kind: type[ForkingKernel]) -> ForkingKernel:
    """Start the kernel of this process."""
    sys.argv = [ipykernel_launcher.__file__, "-f", "kernel.json"]
    config = Config()
    config.HistoryManager.hist_file = ":memory:"  # a file is written by a thread
    config.InteractiveShell.colors = "NoColor"
    application = _Application.instance(config=config, kernel_class=kind)
    application.initialize([])
    return application.kernel
