"""The feed that tells subscribers the changes in a home: one thread looks at the store while anybody subscribes.

The thread asks SQLite for a number that any commit changes (microseconds), and reads only when it has. Each subscriber
has its own cursor, the id of the last change it was given, so it misses none and is given none twice. Where the manager
was killed and an experiment is unfinished, the thread starts it again: who only watches goes on seeing points.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Sequence
from functools import partial
from typing import Final

from jupyter_autotrain import manager
from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.client.manager_client import ManagerGuard
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.store import Change, Store

MOST_PENDING: Final = 1000
MOST_SUBSCRIBERS: Final = 64
_LOOK_EVERY_S: Final = 0.05  # while there is news
_LOOK_IDLE_S: Final = 0.125  # after a while without any
_IDLE_AFTER_S: Final = 5.0
_LOOK_AGAIN_S: Final = 1.0  # where there is no store, or it cannot be read now
_MANAGER_EVERY_S: Final = 2.0


class Subscriber:
    """A receiver of changes. Those not fetched yet are kept, one change per experiment and kind.

    Args:
        since: The id of the last change that is known.
    """

    def __init__(self, since: int) -> None:
        self.last_id = since  # of the feed's thread alone
        self.knows_manager: bool | None = None  # the same
        self._loop = asyncio.get_running_loop()
        self._pending: dict[tuple[str, str], Change] = {}
        self._news = asyncio.Event()
        self._end_id = since
        self._is_reset = False
        self._is_ended = False
        self._manager: bool | None = None

    def tell(self, changes: Sequence[Change], end_id: int, *, is_reset: bool, manager_alive: bool | None) -> None:
        """Deliver news; any thread may call this."""
        with contextlib.suppress(RuntimeError):  # the server ends, and its loop is closed
            self._loop.call_soon_threadsafe(self._take, changes, end_id, is_reset, manager_alive)

    def _take(self, changes: Sequence[Change], end_id: int, is_reset: bool, manager_alive: bool | None) -> None:
        for change in changes:
            self._pending.pop((change.experiment_id, change.kind), None)
            self._pending[change.experiment_id, change.kind] = change
        self._end_id = end_id
        self._is_reset = self._is_reset or is_reset or len(self._pending) > MOST_PENDING
        if self._is_reset:
            self._pending.clear()
        self._manager = manager_alive if manager_alive is not None else self._manager
        self._news.set()

    def end(self) -> None:
        """Tell the subscriber that no more news come; any thread may call this."""
        with contextlib.suppress(RuntimeError):  # the server ends, and its loop is closed
            self._loop.call_soon_threadsafe(self._take_end)

    def _take_end(self) -> None:
        self._is_ended = True
        self._news.set()

    async def next_message(self) -> JsonObject | None:
        """Wait for news, and return everything since the last message in one.

        Returns:
            `changes` (id, experiment, kind), `last_id` for the next subscription, `reset` where the changes are too
            many or the store is another one: then everything has to be loaded again; `manager` where its state is news.
            None where nothing is told any more: who subscribes again with the `last_id` of before misses nothing.
        """
        await self._news.wait()
        if self._is_ended:
            return None
        self._news.clear()
        changes: list[JsonValue] = list(map(_change_json, self._pending.values()))
        message: dict[str, JsonValue] = {"changes": changes, "last_id": self._end_id, "reset": self._is_reset}
        if self._manager is not None:
            message["manager"] = {"alive": self._manager}
        self._pending.clear()
        self._is_reset = False
        self._manager = None
        return message


def _change_json(change: Change) -> JsonObject:
    return {"id": change.id, "experiment": change.experiment_id, "kind": change.kind}


class ChangeFeed:
    """The feed of a home's changes to its subscribers.

    Args:
        home: The home; it need not be there yet.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        self._lock = threading.Lock()
        self._subscribers: list[Subscriber] = []
        self._wakeup = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def is_full(self) -> bool:
        """True when no more can subscribe."""
        return len(self._subscribers) >= MOST_SUBSCRIBERS

    def subscribe(self, subscriber: Subscriber) -> None:
        """Tell a subscriber of all changes above its last id, beginning now."""
        with self._lock:
            self._subscribers.append(subscriber)
            if self._thread is None:
                self._thread = threading.Thread(target=self._follow, name="autotrain-changes", daemon=True)
                self._thread.start()
        self._wakeup.set()

    def unsubscribe(self, subscriber: Subscriber) -> None:
        """Tell a subscriber nothing more; without subscribers nothing is looked at."""
        with self._lock:
            self._subscribers.remove(subscriber)
        self._wakeup.set()

    def _follow(self) -> None:
        look = _Look(self._home)
        try:
            while subscribers := self._current():
                pause_s = look.tell(subscribers)
                self._wakeup.wait(pause_s)
        finally:
            self._end()
            look.close()

    def _end(self) -> None:
        """End all subscribers where the thread has failed.

        They have to come again: the first one begins another thread.
        """
        with self._lock:
            if self._thread is not threading.current_thread():
                return
            self._thread = None
            for subscriber in self._subscribers:
                subscriber.end()

    def _current(self) -> list[Subscriber]:
        """Return the subscribers now; where there is none, let the thread end."""
        self._wakeup.clear()  # before they are read: who subscribes from now on is told without a pause
        with self._lock:
            if not self._subscribers:
                self._thread = None
            return [*self._subscribers]


class _Look:
    """The state of the home that the thread has seen so far."""

    def __init__(self, home: Home) -> None:
        self._home = home
        self._store: Store | None = None
        self._version: int | None = None
        self._manager: bool | None = None
        self._manager_at_s = 0.0
        self._guard = ManagerGuard(home, self._has_unfinished, partial(manager.ensure, home))
        self._news_at_s = 0.0

    def tell(self, subscribers: Sequence[Subscriber]) -> float:
        """Tell the subscribers the news, and return the seconds to pause."""
        try:
            self._look_at_manager()
            return self._tell(subscribers)
        # The store is gone or being repaired, or this process has no descriptor left: it is opened again, and tells of
        # a reset where it is another.
        except (AutotrainError, OSError):
            self.close()
            return _LOOK_AGAIN_S

    def _tell(self, subscribers: Sequence[Subscriber]) -> float:
        if self._store is None and self._home.store.is_file():
            self._store = Store.open(self._home, is_read_only=True)
        if self._store is None:
            for subscriber in subscribers:
                self._tell_one(subscriber, [], subscriber.last_id, is_reset=False)
            return _LOOK_AGAIN_S / 4
        version = self._store.data_version()
        is_changed = version != self._version
        if is_changed:
            self._news_at_s = time.monotonic()
        for subscriber in subscribers:
            if is_changed or subscriber.knows_manager is None:
                self._tell_changes(self._store, subscriber)
            else:
                self._tell_one(subscriber, [], subscriber.last_id, is_reset=False)
        self._version = version
        return _LOOK_EVERY_S if time.monotonic() - self._news_at_s < _IDLE_AFTER_S else _LOOK_IDLE_S

    def _tell_changes(self, store: Store, subscriber: Subscriber) -> None:
        newest = store.last_change_id()
        changes = store.changes(subscriber.last_id, MOST_PENDING + 1) if newest >= subscriber.last_id else []
        is_reset = newest < subscriber.last_id or len(changes) > MOST_PENDING
        if is_reset:
            self._tell_one(subscriber, [], newest, is_reset=True)
        elif changes or subscriber.knows_manager != self._manager:
            end_id = changes[-1].id if changes else subscriber.last_id
            self._tell_one(subscriber, changes, end_id, is_reset=False)

    def _tell_one(self, subscriber: Subscriber, changes: Sequence[Change], end_id: int, *, is_reset: bool) -> None:
        news = None if subscriber.knows_manager == self._manager else self._manager
        if not changes and not is_reset and news is None:
            return
        subscriber.last_id = end_id
        subscriber.knows_manager = self._manager
        subscriber.tell(changes, end_id, is_reset=is_reset, manager_alive=news)

    def _has_unfinished(self) -> bool:
        return self._store is not None and bool(self._store.unfinished())

    def _look_at_manager(self) -> None:
        self._guard.look()
        now_s = time.monotonic()
        if self._manager is None or now_s - self._manager_at_s > _MANAGER_EVERY_S:
            self._manager = manager.status(self._home).alive
            self._manager_at_s = now_s

    def close(self) -> None:
        """Give the store back."""
        if self._store is not None:
            self._store.close()
        self._store = None
        self._version = None
