"""The socket of changes: nothing is missed, nothing comes twice, also after a reconnect; nothing costs while idle."""

import json
import time

import psutil
import pytest
import websocket

import jupyter_autotrain as at
from tests.server.jupyter import Filler, problem_of, running_server

REPORTS = "import time\nwhile not should_stop():\n    report(acc=1)\n    time.sleep(0.05)"
REST_S = 0.05  # of the socket between two messages


class Page:
    """A page that follows the home."""

    def __init__(self, server, since=None, **options):
        address = f"{server.api.replace('http', 'ws', 1)}/changes?token={server.token}"
        address += "" if since is None else f"&since={since}"
        self.socket = websocket.create_connection(address, timeout=120, **options)
        self.changes = []
        self.messages = []

    def until(self, condition):
        """Read messages until the condition holds; gives the last one."""
        deadline_s = time.monotonic() + 120
        while True:
            assert time.monotonic() < deadline_s, self.messages
            message = json.loads(self.socket.recv())
            self.messages.append(message)
            self.changes += message["changes"]
            if condition(message):
                return message

    def until_change(self, experiment, kind):
        """Read messages until one tells of this."""
        return self.until(lambda message: (experiment, kind) in _kinds(message["changes"]))

    def close(self):
        self.socket.close()


def _kinds(changes):
    return {(change["experiment"], change["kind"]) for change in changes}


@pytest.fixture
def follow(server):
    pages = []

    def opened(**options):
        pages.append(Page(server, **options))
        return pages[-1]

    yield opened
    for page in pages:
        page.close()


def test_each_kind_of_change_is_told(server, filler, follow):
    page = follow(since=filler.store.last_change_id())
    filler.experiment("c1")
    page.until_change("c1", "state")
    filler.begin("c1", 1)
    page.until_change("c1", "state")
    filler.report("c1", 1, [0.5])
    page.until_change("c1", "metrics")
    server.ask("PATCH", "/experiments/c1", json={"note": "x"})
    page.until_change("c1", "state")


def test_a_page_that_reconnects_misses_nothing_and_sees_nothing_twice(filler, follow):
    first = follow(since=filler.store.last_change_id())
    filler.experiment("c2")
    last_id = first.until_change("c2", "state")["last_id"]
    first.close()
    filler.begin("c2", 1)
    filler.report("c2", 1, [0.5])
    second = follow(since=last_id)
    second.until_change("c2", "metrics")
    ids = [change["id"] for change in first.changes + second.changes]
    assert ids == sorted(set(ids))
    assert _kinds(second.changes) == {("c2", "state"), ("c2", "metrics")}


def test_a_page_that_names_no_change_is_told_of_those_after_it(filler, follow):
    filler.done("c8")
    page = follow()
    filler.experiment("c9")
    page.until_change("c9", "state")
    assert {change["experiment"] for change in page.changes} == {"c9"}


def test_two_pages_are_told_the_same(filler, follow):
    since = filler.store.last_change_id()
    pages = [follow(since=since), follow(since=since)]
    filler.done("c3")
    for page in pages:
        page.until_change("c3", "state")


def test_a_burst_becomes_few_messages_and_no_page_grows(filler, follow):
    page = follow(since=filler.store.last_change_id())
    began_s = time.monotonic()
    filler.experiment("c4")
    filler.begin("c4", 1)
    for value in range(300):
        filler.report("c4", 1, [float(value)])
    last_id = filler.store.last_change_id()
    page.until(lambda message: message["last_id"] >= last_id)
    assert len(page.messages) < (time.monotonic() - began_s) / REST_S + 3
    assert max(len(message["changes"]) for message in page.messages) <= 3


def test_an_id_of_another_store_means_load_again(filler, follow):
    filler.experiment("c5")
    last_id = filler.store.last_change_id()
    message = follow(since=last_id + 1_000_000).until(lambda message: message["reset"])
    assert message["last_id"] == last_id


def test_the_first_message_tells_whether_a_manager_lives(follow, filler):
    page = follow(since=filler.store.last_change_id())
    assert page.until(lambda message: "manager" in message)["manager"] == {"alive": False}


def test_no_home_is_an_empty_list_and_one_that_is_made_later_is_followed_also_by_the_next_server(tmp_path):
    with running_server(tmp_path / "a") as server:
        assert server.get("/experiments")["experiments"] == []
        assert server.get("/notebooks") == {"notebooks": []}
        assert server.get("/manager")["alive"] is False
        assert {"debug", "local"} <= {row["name"] for row in server.get("/backends")["backends"]}
        problem_of(server.ask("GET", "/experiments/nothing"))
        problem_of(server.ask("POST", "/manager"))
        assert not server.home.root.exists()
        page = Page(server, since=0)
        filler = Filler(server)
        filler.experiment("r1")
        last_id = page.until_change("r1", "state")["last_id"]
        page.close()
        filler.store.close()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "home").rename(tmp_path / "b" / "home")
    with running_server(tmp_path / "b") as server:
        filler = Filler(server)
        filler.begin("r1", 1)
        page = Page(server, since=last_id)
        page.until_change("r1", "state")
        assert all(change["id"] > last_id for change in page.changes)
        page.close()
        filler.store.close()


def test_an_idle_page_costs_next_to_nothing(server, filler, follow):
    page = follow(since=filler.store.last_change_id())
    page.until(lambda message: "manager" in message)
    process = psutil.Process(server.process.pid)
    # The benchmark measures the exact share; on a loaded machine, and after other tests, it takes a while to rest.
    assert any(cpu_share(process, 4) < 0.03 for _ in range(15))


def cpu_share(process, seconds):
    """Return how much of a core it uses in the next seconds."""
    before = process.cpu_times()
    time.sleep(seconds)  # what is measured is that nothing happens for this time
    after = process.cpu_times()
    return (after.user + after.system - before.user - before.system) / seconds


def test_a_page_that_only_watches_goes_on_seeing_points_after_the_manager_was_killed(tmp_path, monkeypatch):
    monkeypatch.setenv("JUPYTER_AUTOTRAIN_IDLE_MIN", "5")
    with running_server(tmp_path) as server:
        experiment = at.submit(REPORTS, home=server.home, name="watched")
        page = Page(server)
        page.until_change(experiment.id, "metrics")
        server.end_manager()
        page.until(lambda message: message.get("manager") == {"alive": False})
        page.until_change(experiment.id, "metrics")
        assert page.messages[-1].get("manager", {"alive": True}) == {"alive": True}
        page.close()
        experiment.stop()
