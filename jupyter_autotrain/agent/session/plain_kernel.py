"""The kernel of a session where ipykernel is not installed: Python alone, with the messages of Jupyter for what it can.

Cells are run, and what they print, return or raise is told; there is no magic, no completion and no `input()`.
"""

from __future__ import annotations

import ast
import builtins
import io
import linecache
import os
import select
import signal
import subprocess
import sys
import time
import traceback
import types
from collections.abc import Callable
from typing import Any, TextIO

from jupyter_autotrain.agent.program import program
from jupyter_autotrain.agent.session import messages
from jupyter_autotrain.agent.session.messages import Message, message

_PIECE_BYTES = 1 << 16
_FORMS = {"text/html": "_repr_html_", "image/svg+xml": "_repr_svg_", "text/markdown": "_repr_markdown_"}
_TOP_LEVEL_AWAIT = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


class KernelProcess:
    """The process of a kernel."""

    _process: subprocess.Popen[bytes]

    def interrupt(self) -> None:
        """Interrupt the running cell."""
        if self._process.poll() is None:
            os.kill(self._process.pid, signal.SIGINT)

    @property
    def ended(self) -> str:
        """The end of the kernel's process in words; "" while it runs."""
        code = self._process.poll()
        if code is None:
            return ""
        return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


class PlainKernel(KernelProcess):
    """A process of Python, and the pipes to it.

    Args:
        directory: The trial directory.
    """

    def __init__(self, directory: str) -> None:
        self._said, inner = os.pipe()
        command = [sys.executable, *program("kernel"), directory, "--plain", str(inner)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=(inner,))
        os.close(inner)
        self._begun = b""  # of a line whose end has not come

    def send(self, one: Message) -> None:
        """Send a message to the kernel; one that ends takes none."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(messages.encode(one))
            self._process.stdin.flush()
        except BrokenPipeError:
            return

    def receive(self, timeout_s: float) -> list[Message]:
        """Return what the kernel has said; wait for it at most so long."""
        if not select.select([self._said], [], [], timeout_s)[0]:
            return []
        data = os.read(self._said, _PIECE_BYTES)
        if not data:
            time.sleep(timeout_s)  # it has ended, which is seen next
        *lines, self._begun = (self._begun + data).split(b"\n")
        return [one for one in map(messages.decode, lines) if one is not None]

    def close(self) -> None:
        """End the kernel."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        os.close(self._said)


def main(fd: int, names: dict[str, object]) -> None:
    """Be the kernel's process: run the requests of stdin in their order, and write what there is to say to `fd`."""
    kernel = _Kernel(fd, names)
    for line in iter(sys.stdin.buffer.readline, b""):
        request = messages.decode(line)
        if request is not None:
            kernel.answer(request)


class _Stream(io.TextIOBase):
    """Standard output or error of a cell."""

    def __init__(self, name: str, tell: Callable[[str, Message], None]) -> None:
        self._name = name
        self._tell = tell

    def write(self, text: str) -> int:
        if text:
            self._tell("stream", {"name": self._name, "text": text})
        return len(text)

    def writable(self) -> bool:
        return True


class _Kernel:
    def __init__(self, fd: int, names: dict[str, object]) -> None:
        self._fd = fd
        self._count = 0
        self._request: Message = message("", "", {})
        module = types.ModuleType("__main__")
        self._names = module.__dict__
        self._names.update(names, __builtins__=builtins, display=self._display)
        sys.modules["__main__"] = module
        outer: list[TextIO] = [_Stream("stdout", self._tell), _Stream("stderr", self._tell)]  # type: ignore[list-item]  # as print needs it
        sys.stdout, sys.stderr = outer
        sys.displayhook = self._show_value
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # but in a cell

    def answer(self, request: Message) -> None:
        """Answer one request."""
        self._request = request
        kind = request["header"]["msg_type"]
        self._tell("status", {"execution_state": "busy"})
        if kind == "execute_request":
            reply = self._run(request["content"])
        elif kind == "kernel_info_request":
            reply = _INFO
        else:
            reply = {"status": "error", "ename": "NotImplementedError", "evalue": kind, "traceback": []}
        self._say(request["channel"], kind.replace("_request", "_reply"), reply)
        self._tell("status", {"execution_state": "idle"})

    def _run(self, content: Message) -> Message:
        is_silent = bool(content.get("silent"))
        if not is_silent:
            self._count += 1
            self._tell("execute_input", {"code": content["code"], "execution_count": self._count})
        counted = {"execution_count": self._count, "user_expressions": {}, "payload": []}
        try:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self._execute(str(content["code"]))
        except BaseException as error:  # noqa: BLE001 - whatever the cell raises is told
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            told = {"ename": type(error).__name__, "evalue": str(error), "traceback": self._lines(error)}
            if not is_silent:
                self._tell("error", told)
            return {"status": "error", **told, **counted}
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        return {"status": "ok", **counted}

    def _execute(self, code: str) -> None:
        label = f"<cell {self._count}>"
        linecache.cache[label] = (len(code), None, code.splitlines(keepends=True), label)
        tree = ast.parse(code, label)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        self._eval(compile(tree, label, "exec", flags=_TOP_LEVEL_AWAIT))
        if last is not None:
            self._eval(compile(ast.Interactive([last]), label, "single", flags=_TOP_LEVEL_AWAIT))

    def _eval(self, code: types.CodeType) -> None:
        result = eval(code, self._names)  # noqa: S307 - running the user's cell is the purpose
        if hasattr(result, "__await__"):
            import asyncio  # noqa: PLC0415 - only cells that wait for something pay

            asyncio.run(result)

    def _lines(self, error: BaseException) -> list[str]:
        """Return the traceback from the cell on."""
        at = error.__traceback__
        while at is not None and not at.tb_frame.f_code.co_filename.startswith("<cell"):
            at = at.tb_next
        text = "".join(traceback.format_exception(type(error), error, at))
        return text.rstrip("\n").split("\n")

    def _show_value(self, value: object) -> None:
        if value is not None:
            self._names["_"] = value
            self._tell("execute_result", {"data": _forms(value), "metadata": {}, "execution_count": self._count})

    def _display(self, *values: object) -> None:
        for value in values:
            self._tell("display_data", {"data": _forms(value), "metadata": {}, "transient": {}})

    def _tell(self, kind: str, content: Message) -> None:
        self._say("iopub", kind, content)

    def _say(self, channel: str, kind: str, content: Message) -> None:
        data = memoryview(messages.encode(message(channel, kind, content, self._request)))
        while data:
            data = data[os.write(self._fd, data) :]


_INFO: Message = {
    "status": "ok", "protocol_version": "5.3", "implementation": "python", "implementation_version": "1", "banner": "",
    "language_info": {"name": "python", "version": sys.version.split()[0], "mimetype": "text/x-python",
                      "file_extension": ".py"},
}  # fmt: skip


def _forms(value: Any) -> dict[str, str]:  # noqa: ANN401 - the cell's
    """Return a value as text, and in the forms that it has itself."""
    found = {"text/plain": repr(value)}
    for form, method in _FORMS.items():
        shown = getattr(value, method, None)
        text = shown() if callable(shown) and not isinstance(value, type) else None
        if isinstance(text, str):
            found[form] = text
    return found
