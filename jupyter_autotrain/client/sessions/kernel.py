"""A session as a Jupyter kernel: `python -m jupyter_autotrain.client.sessions.kernel -f FILE --session NAME`.

Whatever starts kernels by their specs, JupyterLab, VS Code or nbclient, starts this program, which has the sockets of a
kernel here and passes messages on to the session. When it is killed or shut down the session goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from pathlib import Path
from typing import Final, cast

import zmq
from jupyter_client.session import Session as Signer

from jupyter_autotrain.agent.session import messages
from jupyter_autotrain.agent.session.messages import Message
from jupyter_autotrain.client.sessions.handle import Session
from jupyter_autotrain.client.sessions.opening import find_session
from jupyter_autotrain.core.home import Home

_ASKED: Final = ("shell", "control", "stdin")
_LEAST_PAUSE_MS: Final = 2.0
_MOST_PAUSE_MS: Final = 50.0
_PAUSE_GROWTH: Final = 1.2
_REMEMBERED: Final = 1000


class Bridge:
    """The sockets of a kernel, and the session behind them.

    Args:
        session: The session.
        connection: The content of a connection file.
    """

    def __init__(self, session: Session, connection: Message) -> None:
        self._session = session
        self._connection = connection
        self._signer = Signer(key=str(connection["key"]).encode(), signature_scheme=connection["signature_scheme"])
        self._context = zmq.Context()
        self._sockets = {name: self._bound(name, zmq.ROUTER) for name in _ASKED}
        self._published = self._bound("iopub", zmq.PUB)
        self._askers: dict[str, list[bytes]] = {}  # by the id of their request; of the newest
        threading.Thread(target=self._beat, daemon=True).start()

    def _bound(self, name: str, kind: int) -> zmq.Socket[bytes]:
        ip, transport, port = (self._connection[key] for key in ("ip", "transport", f"{name}_port"))
        made = self._context.socket(kind)
        made.linger = 1000
        made.bind(f"{transport}://{ip}{'-' if transport == 'ipc' else ':'}{port}")
        return made

    def _beat(self) -> None:
        heart = self._bound("hb", zmq.ROUTER)
        zmq.proxy(heart, heart)

    def run(self) -> None:
        """Pass messages on until a shutdown is asked for.

        Raises:
            AutotrainError: The session has ended.
        """
        poller = zmq.Poller()
        for socket in self._sockets.values():
            poller.register(socket, zmq.POLLIN)
        pause_ms = _LEAST_PAUSE_MS
        while True:
            asked = {name for name, socket in self._sockets.items() if socket in dict(poller.poll(round(pause_ms)))}
            for name in asked:
                if not self._take(name):
                    return
            found = self._session.receive()
            for one in found:
                self._answer(one)
            pause_ms = _LEAST_PAUSE_MS if asked or found else min(pause_ms * _PAUSE_GROWTH, _MOST_PAUSE_MS)

    def _take(self, channel: str) -> bool:
        """Take one request; gives False for the one to shut down."""
        asker, request = self._signer.recv(self._sockets[channel])
        if asker is None or request is None:
            return True
        request["channel"] = channel
        if request["header"]["msg_type"] == "shutdown_request":
            if request["content"].get("restart"):
                self._session.restart()
            self._signer.send(
                self._sockets[channel], "shutdown_reply", {"status": "ok", **request["content"]}, request, asker
            )
            return False
        self._askers[request["header"]["msg_id"]] = asker
        if len(self._askers) > _REMEMBERED:
            del self._askers[next(iter(self._askers))]
        request["buffers"] = list(map(bytes, request["buffers"]))
        self._session.send(request)
        return True

    def _answer(self, said: Message) -> None:
        """Give a front end what the kernel says: to all of them, or to the one that asked."""
        channel = said["channel"]
        kind = said["header"]["msg_type"]
        if channel == "iopub":
            self._signer.send(self._published, said, ident=f"kernel.{kind}".encode(), buffers=said["buffers"])
        elif channel == messages.SESSION and kind in {"warning", "restarted"}:
            text = str(said["content"].get("text") or "The kernel of the session began anew; its variables are gone.")
            self._signer.send(self._published, "stream", {"name": "stderr", "text": f"{text}\n"}, ident=b"stream")
        elif asker := self._askers.get(said["parent_header"].get("msg_id", "")):
            self._signer.send(self._sockets[channel], said, ident=asker, buffers=said["buffers"])


def main(arguments: list[str]) -> None:
    """Be the kernel of a session until a front end shuts it down."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-f", required=True)
    parser.add_argument("--session", required=True)
    parser.add_argument("--home", required=True)
    given = parser.parse_args(arguments)
    connection = cast("Message", json.loads(Path(given.f).read_text(encoding="utf-8")))
    with Session(find_session(Home(Path(given.home)), given.session)) as session:
        Bridge(session, connection).run()


if __name__ == "__main__":
    main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(0)  # the heartbeat's socket has no other end
