"""The kernel of a session where ipykernel is installed: a process, with sockets in a private folder."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time

from jupyter_autotrain.agent.program import program
from jupyter_autotrain.agent.session import plain_kernel
from jupyter_autotrain.agent.session.messages import Message
from jupyter_autotrain.agent.session.plain_kernel import KernelProcess, PlainKernel

_CHANNELS = ("shell", "control", "stdin", "iopub")
_ASK_AGAIN_S = 0.2  # what the kernel publishes before it is subscribed to is lost
_PATIENCE_S = 300.0
_ENDS_IN_S = 5.0


class JupyterKernel(KernelProcess):
    """An ipykernel, and the sockets to it.

    Args:
        directory: The trial directory.

    Raises:
        ImportError: ipykernel is not installed here.
        RuntimeError: It does not start.
    """

    def __init__(self, directory: str) -> None:
        import ipykernel  # type: ignore[import-untyped,unused-ignore]  # noqa: F401, PLC0415 - not at every place
        from jupyter_client.blocking.client import BlockingKernelClient  # noqa: PLC0415 - as above
        from jupyter_client.connect import write_connection_file  # noqa: PLC0415 - as above

        self._folder = tempfile.mkdtemp(prefix="autotrain-session-")
        file = f"{self._folder}/kernel.json"
        write_connection_file(file, ip=f"{self._folder}/k", transport="ipc", key=secrets.token_hex(32).encode())
        command = [sys.executable, *program("kernel"), directory, "-f", file]
        environment = {**os.environ, "JPY_PARENT_PID": str(os.getpid()), "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
        environment.pop("MPLBACKEND", None)  # it draws inline
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, env=environment)
        self._client = BlockingKernelClient(connection_file=file)
        self._client.load_connection_file()
        self._client.start_channels(hb=False)
        self._sockets = {name: getattr(self._client, f"{name}_channel").socket for name in _CHANNELS}
        self._wait_for_answer()

    def _wait_for_answer(self) -> None:
        deadline_s = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline_s and self._process.poll() is None:
            self._client.kernel_info()
            if any(one["channel"] == "iopub" for one in self.receive(_ASK_AGAIN_S)):
                return
        self.close()
        raise RuntimeError("the kernel of the session does not start: see its stderr")

    def send(self, one: Message) -> None:
        """Send a message to the kernel."""
        self._client.session.send(self._sockets[one["channel"]], one, buffers=one["buffers"])

    def receive(self, timeout_s: float) -> list[Message]:
        """Return what the kernel has said, in its order on each channel; wait for it at most so long."""
        import zmq  # noqa: PLC0415 - jupyter_client has imported it

        poller = zmq.Poller()
        for socket in self._sockets.values():
            poller.register(socket, zmq.POLLIN)
        ready = dict(poller.poll(round(timeout_s * 1000)))
        found = []
        for channel in ("iopub", "stdin", "control", "shell"):  # a reply after what was shown before it
            socket = self._sockets[channel]
            while socket in ready and socket.poll(0):
                _, said = self._client.session.recv(socket)
                if said is not None:
                    found.append({**said, "channel": channel, "buffers": list(map(bytes, said["buffers"]))})
        return found

    def close(self) -> None:
        """End the kernel, as a front end does."""
        self._client.shutdown()
        try:
            self._process.wait(_ENDS_IN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._client.stop_channels()
        shutil.rmtree(self._folder, ignore_errors=True)


def start_kernel(directory: str) -> JupyterKernel | PlainKernel:
    """Start the kernel of a session: ipykernel where it is installed, else Python alone.

    Raises:
        RuntimeError: It does not start.
    """
    try:
        return JupyterKernel(directory)
    except ImportError:
        return PlainKernel(directory)


def main(directory: str, arguments: list[str]) -> None:
    """Be the kernel's process, with the names of a trial: ipykernel, or with `--plain FD` Python alone."""
    from jupyter_autotrain.agent.ranks import api  # noqa: PLC0415 - only the kernel itself pays

    names = api.load(directory).names()
    del names["display"]  # that of the kernel shows more
    if arguments[0] == "--plain":
        plain_kernel.main(int(arguments[1]), names)
        return
    from ipykernel.kernelapp import IPKernelApp  # noqa: PLC0415 - not at every place

    application = IPKernelApp.instance()
    application.initialize([*arguments, "--HistoryManager.enabled=False"])  # type: ignore[no-untyped-call]  # no types here
    assert application.shell is not None
    application.shell.push(names, interactive=False)
    application.start()  # type: ignore[no-untyped-call]  # as above
