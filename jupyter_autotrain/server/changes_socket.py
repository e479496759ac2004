"""The WebSocket that tells a page what changes: `changes?since=ID`; a page that reconnects misses nothing."""

from __future__ import annotations

import asyncio
import json
from http import HTTPStatus
from typing import Final

from jupyter_core.utils import ensure_async
from jupyter_server.auth.decorator import ws_authenticated
from jupyter_server.base.handlers import JupyterHandler
from jupyter_server.base.websocket import WebSocketMixin
from tornado.web import HTTPError
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from jupyter_autotrain.server.change_feed import ChangeFeed, Subscriber
from jupyter_autotrain.server.context import ServerContext, check_owner
from jupyter_autotrain.server.problems import ProblemError

RESOURCE: Final = "autotrain.changes"
_MOST_DIGITS: Final = 18
_REST_S: Final = 0.05  # between two messages: what comes meanwhile is in one
_LONGEST_MESSAGE_BYTES: Final = 1024


class ChangesSocket(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """One page that follows the home."""

    def initialize(self, server: ServerContext, feed: ChangeFeed) -> None:
        """Keep what all pages share."""
        self._server = server
        self._feed = feed
        self._subscriber: Subscriber | None = None
        self._sending: asyncio.Task[None] | None = None
        self._since = 0

    @property
    def max_message_size(self) -> int:
        """Pages have nothing to say."""
        return _LONGEST_MESSAGE_BYTES

    @ws_authenticated
    async def get(self) -> None:
        """Check who asks, for what, and whose home it is; then begin."""
        allowed = await ensure_async(self.authorizer.is_authorized(self, self.current_user, "read", RESOURCE))
        if not allowed:
            raise HTTPError(HTTPStatus.FORBIDDEN)
        since = self.get_query_argument("since", "0")
        if not (since.isascii() and since.isdigit() and len(since) <= _MOST_DIGITS):
            raise HTTPError(HTTPStatus.BAD_REQUEST)
        if self._feed.is_full:
            raise HTTPError(HTTPStatus.SERVICE_UNAVAILABLE)
        self._since = int(since)
        try:
            await asyncio.get_running_loop().run_in_executor(self._server.threads, check_owner, self._server.home)
        except ProblemError as refused:
            raise HTTPError(refused.status) from None
        await super().get()

    def open(self, *args: str, **kwargs: str) -> None:
        """Begin to tell."""
        super().open(*args, **kwargs)
        self._subscriber = Subscriber(self._since)
        self._feed.subscribe(self._subscriber)
        self._sending = asyncio.create_task(self._send(self._subscriber))

    async def _send(self, subscriber: Subscriber) -> None:
        while True:
            message = await subscriber.next_message()
            try:
                await self.write_message(json.dumps(message))
            except WebSocketClosedError:
                return
            await asyncio.sleep(_REST_S)

    def on_message(self, message: str | bytes) -> None:
        """Nothing that a page sends means anything."""

    def on_close(self) -> None:
        """Stop to tell."""
        if self._sending is not None:
            self._sending.cancel()
        if self._subscriber is not None:
            self._feed.unsubscribe(self._subscriber)
            self._subscriber = None
        super().on_close()
