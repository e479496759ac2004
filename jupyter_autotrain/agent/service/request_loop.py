"""The loop of all that answers requests over a byte stream: the agent on a host, and our program in a pod.

A line of input is `{"id": number, "do": name, ...}`; its answer is `{"id": number, "ok": ...}` or
`{"id": number, "failure": [found, expected, action]}`. Bytes of files are base64.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from jupyter_autotrain.agent.errors import AutotrainError

Request = Mapping[str, Any]
Handlers = Mapping[str, Callable[[Request], object]]


class RequestLoop:
    """The requests of one stream; each is answered as soon as it can be.

    Args:
        output: Takes the answers, and what is pushed unasked.
    """

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._writing = threading.Lock()

    def write(self, message: Mapping[str, object]) -> None:
        """Write one message."""
        data = json.dumps(message).encode() + b"\n"
        with self._writing:
            self._output.write(data)
            self._output.flush()

    def serve(self, requests: BinaryIO, handlers: Handlers, on_request: Callable[[], None]) -> None:
        """Answer until the input ends, every request in a thread of its own.

        Args:
            requests: The input.
            handlers: What answers, by the names of requests.
            on_request: Called for each of them first.
        """
        for line in requests:
            on_request()
            threading.Thread(target=self.answer, args=(line, handlers), daemon=True).start()

    def answer(self, line: bytes, handlers: Handlers) -> None:
        """Answer one request. A failure is an answer too: whoever asks must not wait forever."""
        request = json.loads(line)
        answer: dict[str, object] = {"id": request.get("id")}
        try:
            answer["ok"] = handlers[request["do"]](request)
        except AutotrainError as error:
            answer["failure"] = [error.found, error.expected, error.action]
        except OSError as error:
            answer["failure"] = [f"{error.filename or request['do']}: {error.strerror or error}.", "", ""]
        except Exception as error:  # noqa: BLE001 - whatever it is, the requester must not wait forever
            import traceback  # noqa: PLC0415 - each request in a pod would pay for it

            answer["failure"] = [f"The agent failed: {error!r}.", "", traceback.format_exc(limit=-2)]
        self.write(answer)
