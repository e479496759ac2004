"""The WebSocket that tells a page what changes: `changes?since=ID`; a page that reconnects misses nothing.

Without `since` it tells of what changes from then on.
"""

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

from jupyter_autotrain.errors import UnknownExperimentError
from jupyter_autotrain.server.change_feed import ChangeFeed, Subscriber
from jupyter_autotrain.server.context import ServerContext, check_owner
from jupyter_autotrain.server.problems import ProblemError

RESOURCE: Final = "autotrain.changes"
_MOST_DIGITS: Final = 18
_REST_S: Final = 0.05  # between two messages: what comes meanwhile is in one
_LONGEST_MESSAGE_BYTES: Final = 1024
_GOING_AWAY: Final = 1001


class ChangesSocket(WebSocketMixin, WebSocketHandler, JupyterHandler):
    """One page that follows the home."""

    def initialize(self, server: ServerContext, feed: ChangeFeed) -> None:
        """Keep the context that all pages share."""
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
        since = self.get_query_argument("since", "")
        is_id = since.isascii() and since.isdigit() and len(since) <= _MOST_DIGITS
        if "since" in self.request.query_arguments and not is_id:
            raise HTTPError(HTTPStatus.BAD_REQUEST)
        if self._feed.is_full:
            raise HTTPError(HTTPStatus.SERVICE_UNAVAILABLE)
        try:
            in_thread = asyncio.get_running_loop().run_in_executor(self._server.threads, _newest_change, self._server)
            newest = await in_thread
        except ProblemError as refused:
            raise HTTPError(refused.status) from None
        self._since = int(since) if since else newest
        await super().get()

    def open(self, *args: str, **kwargs: str) -> None:
        """Begin to tell the page of changes."""
        super().open(*args, **kwargs)
        self._subscriber = Subscriber(self._since)
        self._feed.subscribe(self._subscriber)
        self._sending = asyncio.create_task(self._send(self._subscriber))

    async def _send(self, subscriber: Subscriber) -> None:
        while (message := await subscriber.next_message()) is not None:
            try:
                await self.write_message(json.dumps(message))
            except WebSocketClosedError:
                return
            await asyncio.sleep(_REST_S)
        self.close(_GOING_AWAY)  # the page comes again

    def on_message(self, message: str | bytes) -> None:
        """Ignore a message: nothing that a page sends means anything."""

    def on_close(self) -> None:
        """Stop telling the page of changes."""
        if self._sending is not None:
            self._sending.cancel()
        if self._subscriber is not None:
            self._feed.unsubscribe(self._subscriber)
            self._subscriber = None
        super().on_close()


def _newest_change(server: ServerContext) -> int:
    """Return the id of the newest change; 0 where there is no home yet, and reading makes none.

    Raises:
        ProblemError: The home belongs to somebody else.
    """
    check_owner(server.home)
    try:
        with server.stores.reading() as store:
            return store.last_change_id()
    except UnknownExperimentError:
        return 0
