"""The process of one try: posts the JSON, tells a service, or runs the command and ends its tree at the deadline.

`python -m jupyter_autotrain.manager.hooks.process` reads a request from its standard input and prints what went wrong,
nothing where all is well. It ends with the manager that has started it: the next one tries again.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException, HTTPMessage
from typing import IO, Any, Final

import psutil

from jupyter_autotrain.agent import system
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.core.hooks import Hook, resolved

_TITLE: Final = "jupyter_autotrain"
_LOOK_S: Final = 0.02
_GRACE_S: Final = 5.0
_MARGIN_S: Final = 5.0
_TRY_MARGIN_S: Final = 20.0  # for the process's own start and end
_MOST_CHARACTERS: Final = 300


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: a message may hold secrets, and goes to the address that was given alone."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        """Follow nothing."""


def main() -> None:
    """Do what the request on the standard input says."""
    parent = os.getppid()
    request = json.load(sys.stdin)
    timeout_s = float(request["timeout_s"])
    payload = json.dumps(request["payload"]).encode()
    if request["command"]:
        fault = run_command(request["command"], payload, timeout_s, parent)
    else:
        # Each single read has the timeout too, but an answer that drips would never end: the alarm ends this process.
        signal.setitimer(signal.ITIMER_REAL, timeout_s + _MARGIN_S)
        if request["service"]:
            fault = notify(request["service"], request["payload"])
        else:
            fault = post(request["url"], request["headers"], payload, timeout_s)
    sys.stdout.write(fault)


def notify(address: str, payload: Mapping[str, Any]) -> str:
    """Send the text to a service of Apprise; gives what went wrong."""
    try:
        from apprise import Apprise, NotifyFormat  # noqa: PLC0415 - it is not always there
    except ImportError:
        return "Apprise is not installed; run `pip install 'jupyter-autotrain[notify]'`, and the next try has it"
    service = Apprise.instantiate(address)
    if service is None:
        return "its address is none of a service that Apprise knows"
    is_sent = service.notify(title=_TITLE, body=str(payload["text"]), body_format=NotifyFormat.TEXT)
    return "" if is_sent else f"{service.service_name} did not take it; look at its address"


def post(url: str, headers: dict[str, str], payload: bytes, timeout_s: float) -> str:
    """Send the JSON; gives what went wrong. The answer's body is not read."""
    fields = {"Content-Type": "application/json", "User-Agent": "jupyter-autotrain", **headers}
    try:
        sent = urllib.request.Request(url, payload, fields, method="POST")  # noqa: S310 - the scheme is checked below
        if sent.type not in {"http", "https"}:
            return "its address is not an http:// or https:// one"
        with urllib.request.build_opener(_NoRedirects).open(sent, timeout=timeout_s):
            return ""
    except urllib.error.HTTPError as error:
        redirects = " (redirects are not followed: give the final address)" if error.code // 100 == 3 else ""
        return f"it was answered with HTTP status {error.code}{redirects}"
    except urllib.error.URLError as error:
        reason = error.reason.strerror if isinstance(error.reason, OSError) else None
        return f"it cannot be reached: {reason or type(error.reason).__name__}"
    except (OSError, HTTPException, ValueError) as error:
        return f"it did not answer as expected ({type(error).__name__})"


def run_command(argv: list[str], payload: bytes, timeout_s: float, parent: int) -> str:
    """Run the command with the JSON on its standard input; gives what went wrong.

    Ends with the manager: it is watched whether `parent` is still there.
    """
    system.adopt_orphans()
    options: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "start_new_session": True}
    read_end, write_end = os.pipe()
    try:
        process = subprocess.Popen(argv, stdin=read_end, cwd=os.path.expanduser("~"), **options)  # noqa: PTH111
    except OSError as error:
        return f"its program cannot be started: {error.strerror}"
    finally:
        os.close(read_end)
    os.set_blocking(write_end, False)
    deadline_s = time.monotonic() + timeout_s
    while process.poll() is None and time.monotonic() < deadline_s and os.getppid() == parent:
        payload, write_end = _fed(payload, write_end)
        time.sleep(_LOOK_S)
    code = process.poll()
    _end_tree()
    if code is None:
        return f"its command did not end within {timeout_s:g} s"
    return f"its command ended with exit status {code}" if code else ""


def _fed(payload: bytes, write_end: int) -> tuple[bytes, int]:
    """Write what the pipe takes now; a command that reads nothing must not hold this process."""
    if write_end < 0:
        return payload, write_end
    try:
        payload = payload[os.write(write_end, payload) :]
    except BlockingIOError:
        return payload, write_end
    except BrokenPipeError:
        payload = b""
    if payload:
        return payload, write_end
    os.close(write_end)
    return payload, -1


def _end_tree() -> None:
    """End all that the command has started, also what made a session of its own: orphans come to this process."""
    deadline_s = time.monotonic() + _GRACE_S
    while left := psutil.Process().children(recursive=True):
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left, timeout=_GRACE_S)
        if time.monotonic() > deadline_s:
            return


def try_once(hook: Hook, payload: JsonObject, variables: Mapping[str, str]) -> str:
    """Tell a hook once; gives what went wrong, "" where nothing did. No value of a variable is in it.

    Args:
        hook: The hook.
        payload: What it is told.
        variables: The values of its variables.
    """
    missing = [name for name in hook.variables if name not in variables]
    if missing:
        names = ", ".join(missing)
        return f"{names} is not set; set it where you submit or attach, and the next try has it"
    request = {
        "url": resolved(hook.url, variables),
        "headers": {name: resolved(value, variables) for name, value in hook.headers.items()},
        "command": list(hook.command),
        "service": resolved(hook.service, variables),
        "timeout_s": hook.timeout_s,
        "payload": payload,
    }
    fault = _run(json.dumps(request).encode(), hook.timeout_s + _TRY_MARGIN_S)
    for name, value in variables.items():
        fault = fault.replace(value, f"${{{name}}}") if value else fault
    return fault[:_MOST_CHARACTERS]


def _run(request: bytes, timeout_s: float) -> str:
    """Return what the process says of it. The request goes through a pipe: arguments can be read by others."""
    argv = [sys.executable, "-P", "-m", "jupyter_autotrain.manager.hooks.process"]
    process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        answer, _ = process.communicate(request, timeout_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return "it did not end in time"
    if process.returncode:
        return f"its process ended with exit status {process.returncode}"
    return answer.decode(errors="replace").strip()


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    main()
