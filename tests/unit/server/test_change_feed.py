"""The feed of changes: each is told once, bursts are bounded, and without subscribers nothing is looked at."""

import asyncio
import errno
import queue
import threading
import time

import pytest

from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.server import change_feed
from jupyter_autotrain.server.change_feed import MOST_PENDING, ChangeFeed, Subscriber
from jupyter_autotrain.store import Change, Store


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


def add(store, experiment_id):
    store.add_experiment(experiment_id, ExperimentSpec("a", Bundle()), time.time())


async def message_of(subscriber):
    return await asyncio.wait_for(subscriber.next_message(), 60)


async def until_told(subscriber, experiment_id):
    """All messages up to the one that tells of an experiment."""
    messages = []
    while not (messages and experiment_id in {change["experiment"] for change in messages[-1]["changes"]}):
        messages.append(await message_of(subscriber))
    return messages


def test_changes_before_and_after_the_subscription_are_told_once(home):
    async def follow():
        feed = ChangeFeed(home)
        with Store.open(home) as store:
            add(store, "a1")
            subscriber = Subscriber(0)
            feed.subscribe(subscriber)
            first = await until_told(subscriber, "a1")
            add(store, "a2")
            second = await until_told(subscriber, "a2")
            feed.unsubscribe(subscriber)
            return [change for message in first + second for change in message["changes"]]

    told = asyncio.run(follow())
    assert [change["experiment"] for change in told] == ["a1", "a2"]


def test_more_changes_than_a_page_can_keep_mean_load_again(home):
    async def follow():
        subscriber = Subscriber(0)
        for number in range(MOST_PENDING + 5):
            subscriber.tell([Change(number + 1, f"e{number}", "state")], number + 1, is_reset=False, manager_alive=None)
        await asyncio.sleep(0)
        return await message_of(subscriber), await _has_more(subscriber)

    message, has_more = asyncio.run(follow())
    assert message["reset"] is True
    assert len(message["changes"]) <= 5
    assert message["last_id"] == MOST_PENDING + 5
    assert has_more is False


async def _has_more(subscriber):
    try:
        await asyncio.wait_for(subscriber.next_message(), 0.05)
    except TimeoutError:
        return False
    return True


def test_a_store_that_took_the_place_of_another_means_load_again(home):
    async def follow():
        feed = ChangeFeed(home)
        with Store.open(home) as store:
            add(store, "a1")
            subscriber = Subscriber(500)
            feed.subscribe(subscriber)
            message = await message_of(subscriber)
            feed.unsubscribe(subscriber)
            return message, store.last_change_id()

    message, last_id = asyncio.run(follow())
    assert message["reset"] is True
    assert message["last_id"] == last_id


def test_without_subscribers_no_thread_looks(home):
    async def follow():
        feed = ChangeFeed(home)
        subscriber = Subscriber(0)
        feed.subscribe(subscriber)
        await message_of(subscriber)
        feed.unsubscribe(subscriber)
        deadline_s = time.monotonic() + 60
        while "autotrain-changes" in {thread.name for thread in threading.enumerate()}:
            assert time.monotonic() < deadline_s
            await asyncio.sleep(0.01)
        again = Subscriber(0)
        feed.subscribe(again)
        assert (await message_of(again))["manager"] == {"alive": False}
        feed.unsubscribe(again)

    asyncio.run(follow())


def test_a_manager_that_ends_is_told(home, monkeypatch):
    lives = [True]
    status = type("Status", (), {"alive": property(lambda _: lives[0])})
    monkeypatch.setattr(change_feed.manager, "status", lambda _: status())
    monkeypatch.setattr(change_feed, "_MANAGER_EVERY_S", 0.05)

    async def follow():
        feed = ChangeFeed(home)
        subscriber = Subscriber(0)
        feed.subscribe(subscriber)
        first = await message_of(subscriber)
        lives[0] = False
        second = await message_of(subscriber)
        feed.unsubscribe(subscriber)
        return first["manager"]["alive"], second["manager"]["alive"]

    assert asyncio.run(follow()) == (True, False)


def failing(monkeypatch, error):
    """Let looks at the manager fail with `error`, until the list is emptied."""
    errors = [error]
    status = type("Status", (), {"alive": True})()

    def look(_):
        if errors:
            raise errors[0]
        return status

    monkeypatch.setattr(change_feed.manager, "status", look)
    monkeypatch.setattr(change_feed, "_MANAGER_EVERY_S", 0.05)
    monkeypatch.setattr(change_feed, "_LOOK_AGAIN_S", 0.05)
    return errors


def test_a_process_without_descriptors_goes_on_when_there_are_some_again(home, monkeypatch):
    errors = failing(monkeypatch, OSError(errno.EMFILE, "too many open files"))

    async def follow():
        feed = ChangeFeed(home)
        subscriber = Subscriber(0)
        feed.subscribe(subscriber)
        looked = await _has_more(subscriber)
        errors.clear()
        message = await message_of(subscriber)
        feed.unsubscribe(subscriber)
        return looked, message

    looked, message = asyncio.run(follow())
    assert (looked, message["manager"]) == (False, {"alive": True})


def test_who_is_told_nothing_any_more_is_sent_away_and_comes_again(home, monkeypatch):
    errors = failing(monkeypatch, ZeroDivisionError())
    raised = queue.Queue()
    monkeypatch.setattr(threading, "excepthook", lambda raising: raised.put(raising.exc_type))

    async def follow():
        feed = ChangeFeed(home)
        subscriber = Subscriber(0)
        feed.subscribe(subscriber)
        last = await message_of(subscriber)
        feed.unsubscribe(subscriber)
        errors.clear()
        again = Subscriber(0)
        feed.subscribe(again)
        message = await message_of(again)
        feed.unsubscribe(again)
        return last, message

    last, message = asyncio.run(follow())
    assert raised.get(timeout=60) is ZeroDivisionError
    assert last is None
    assert message["manager"] == {"alive": True}
