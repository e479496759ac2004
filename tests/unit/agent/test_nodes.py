"""The supervisors of a trial's nodes: how they meet, what they tell each other, and when they end."""

from __future__ import annotations

import contextlib
import os
import select
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_autotrain.agent import nodes, wire
from jupyter_autotrain.agent.nodes.link import NodeLink
from jupyter_autotrain.agent.nodes.part import NodePart
from jupyter_autotrain.agent.pods import rendezvous
from jupyter_autotrain.agent.system import ports
from jupyter_autotrain.agent.trial.termination_causes import ENDED_BECAUSE


class Descriptors:
    """Descriptors that a supervisor waits on."""

    def __init__(self) -> None:
        self.watched: set[int] = set()

    def add(self, fd: int) -> None:
        self.watched.add(fd)

    def remove(self, fd: int) -> None:
        self.watched.discard(fd)


class Trial:
    """The nodes of a trial in one process, each with its folder."""

    def __init__(self, folder: Path, count: int, *, elastic: bool = False, wait_s: int = 60) -> None:
        self.folder = folder
        self.count = count
        self.port = ports.find_free(1)[0]
        self.given = {"workers": 2, "elastic": elastic}
        self.wait_s = wait_s
        self.watch = Descriptors()
        self.partials: list[tuple[int, Any]] = []
        self.parts: dict[int, NodePart] = {node: self.part(node) for node in range(count)}
        self.parts[0].on_partials = lambda node, lines: self.partials.append((node, lines))

    @contextlib.contextmanager
    def inside(self, node: int) -> Iterator[None]:
        before = Path.cwd()
        (self.folder / str(node) / wire.CONTROL).mkdir(parents=True, exist_ok=True)
        os.chdir(self.folder / str(node))
        yield
        os.chdir(before)

    def part(self, node: int, token: str = "known") -> NodePart:
        layout = {
            "node_rank": node, "nodes": self.count, "first": ["127.0.0.1", self.port], "address": "127.0.0.1",
            "wait_s": self.wait_s,
        }  # fmt: skip
        with self.inside(node):
            made = nodes.part_of({**self.given, "layout": layout}, token, self.watch)
        assert made is not None
        return made

    def advance_until(self, condition: Callable[[], object]) -> None:
        end_s = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end_s
            for node, one in self.parts.items():
                with self.inside(node):
                    one.advance()
            time.sleep(0.002)

    def meet(self) -> None:
        self.advance_until(lambda: all(one.endpoints for one in self.parts.values()))

    def finish(self, node: int, state: str = "SUCCEEDED") -> None:
        with self.inside(node):
            self.parts.pop(node).finish(state, f"{state} here.")

    def kill(self, node: int) -> None:
        """As a process that is killed: its links close, and it says nothing."""
        gone = self.parts.pop(node)
        links = gone._links.values() if node == 0 else [gone._link]  # type: ignore[attr-defined]
        for link in list(links):
            self.watch.remove(link.fd)
            link.close()

    def text(self, node: int, name: str) -> str:
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / str(node) / name).read_text()
        return ""

    def write(self, node: int, name: str, text: str) -> None:
        (self.folder / str(node) / name).write_text(text)

    def ends(self) -> dict[int, str]:
        return {node: one.end_reason for node, one in self.parts.items()}


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Trial]]:
    made: list[Trial] = []

    def make(count: int, **options: Any) -> Trial:
        made.append(Trial(tmp_path, count, **options))
        return made[-1]

    yield make
    for trial in made:
        for node in list(trial.parts):
            trial.finish(node)
        assert not trial.watch.watched


def test_all_nodes_get_the_same_endpoints_in_the_order_of_their_numbers(make: Callable[..., Trial]) -> None:
    trial = make(3)
    trial.meet()
    first = trial.parts[0].endpoints
    assert all(one.endpoints == first for one in trial.parts.values())
    assert [(address, len(free)) for address, free in first] == [("127.0.0.1", 3)] * 3


def test_a_trial_on_one_node_has_no_part() -> None:
    assert nodes.part_of({}, "known", Descriptors()) is None
    assert nodes.part_of({"layout": {"nodes": 1}}, "known", Descriptors()) is None


def test_the_number_of_a_pod_is_its_variable_and_the_offset() -> None:
    options = {"variables": {"rank": "RANK", "first_address": "FIRST", "offset": "OFFSET"}, "nodes": 4}
    assert rendezvous.node_of(options, {"RANK": "2", "OFFSET": "1"}) == 3
    assert rendezvous.node_of(options, {"RANK": "2"}) == 2
    assert rendezvous.node_of({"variables": {"rank": "", "offset": ""}}, {}) == 0
    assert rendezvous.layout(options, {"RANK": "2", "FIRST": "head"})["first"] == ["head", rendezvous.PORT]


def test_a_node_with_another_token_is_not_let_in_and_learns_nothing(make: Callable[..., Trial]) -> None:
    trial = make(2)
    own = trial.parts.pop(1)
    stranger = trial.part(1, token="guessed")
    for _ in range(200):
        for node, one in ((0, trial.parts[0]), (1, stranger)):
            with trial.inside(node):
                one.advance()
    assert not trial.parts[0].endpoints
    assert not stranger.endpoints
    with trial.inside(1):
        stranger.finish("FAILED", "")
    trial.parts[1] = own
    trial.meet()


def test_a_node_does_not_obey_one_that_listens_in_the_place_of_node_0(make: Callable[..., Trial]) -> None:
    trial = make(2)
    trial.finish(0)
    with socket.create_server(("127.0.0.1", trial.port)) as listener:
        trial.advance_until(lambda: trial.parts[1]._link)  # type: ignore[attr-defined]
        connected, _ = listener.accept()
    impostor = NodeLink(connected, "guessed", is_first=True)
    impostor.send({"endpoints": [["127.0.0.1", []]] * 2, "launch": "evil"})
    mine = trial.parts[1]
    link = mine._link  # type: ignore[attr-defined]
    with trial.inside(1):
        while not link.is_closed:
            list(impostor.received())
            mine.advance()
    assert (mine.endpoints, mine.launch_command) == ([], "")
    impostor.close()


def test_a_line_that_another_has_put_between_closes_the_link() -> None:
    left, right = socket.socketpair()
    first = NodeLink(left, "known", is_first=True)
    other = NodeLink(right, "known", is_first=False)
    other.send({"node": 1})
    assert list(other.received()) == []
    assert list(first.received()) == [{"node": 1}]
    right.sendall(b'0000 {"ended": "FAILED"}\n')
    assert list(first.received()) == []
    assert first.is_closed
    first.close()
    other.close()


def test_a_port_scanner_keeps_nobody_out_and_no_node_waits_for_it(make: Callable[..., Trial]) -> None:
    trial = make(2)
    with socket.create_connection(("127.0.0.1", trial.port)) as silent:
        with socket.create_connection(("127.0.0.1", trial.port)) as other:
            other.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 3)
            begun_s = time.monotonic()
            trial.meet()
        assert time.monotonic() - begun_s < 60
        assert silent.fileno()


def test_nodes_that_do_not_meet_say_so_in_three_clauses(make: Callable[..., Trial]) -> None:
    trial = make(2, wait_s=0)
    other = trial.parts.pop(1)
    trial.advance_until(lambda: trial.parts[0].fault)
    found = trial.parts[0].fault
    assert found.startswith("Only 1 of 2 nodes of the trial have come. All nodes of a trial were expected to reach ")
    assert "(a firewall?)" in found
    trial.finish(0)
    trial.parts[1] = other
    trial.advance_until(lambda: other.fault)
    assert other.fault.startswith(f"Node 0 of the trial does not answer at 127.0.0.1, port {trial.port}: ")
    assert "refused" in other.fault


def test_a_port_that_is_taken_is_told(make: Callable[..., Trial]) -> None:
    trial = make(2)
    again = trial.part(0)
    assert "Node 0 cannot listen for the other nodes: Address already in use" in again.fault


def test_what_ranks_report_together_comes_to_node_0_in_order_and_then_its_end(make: Callable[..., Trial]) -> None:
    trial = make(2)
    trial.meet()
    trial.parts[1].report('["p", 1]\n["p", 2]\n')
    trial.parts[1].report("ä" * 1_000_000)
    trial.advance_until(lambda: len(trial.partials) == 2)
    trial.parts[1].report('["p", 3]\n')
    trial.finish(1)
    trial.advance_until(lambda: not trial.parts[0].awaits_others)
    assert trial.partials == [(1, ['["p", 1]', '["p", 2]']), (1, ["ä" * 1_000_000]), (1, ['["p", 3]']), (1, None)]


def test_many_messages_that_wait_take_time_that_grows_with_their_number_only(
    make: Callable[..., Trial],
) -> None:
    trial = make(2)
    trial.meet()
    for number in range(20_000):
        trial.parts[1].report(f"{number:0100d}")
    begun_s = time.process_time()
    trial.advance_until(lambda: len(trial.partials) == 20_000)
    assert time.process_time() - begun_s < 20.0
    assert [int(lines[0]) for _, lines in trial.partials] == list(range(20_000))


def test_mpiexec_on_node_0_has_its_daemons_run_on_the_others(make: Callable[..., Trial]) -> None:
    trial = make(3)
    trial.meet()
    trial.parts[0].launch({1: "orted one", 2: "orted two"})
    trial.advance_until(lambda: trial.parts[1].launch_command and trial.parts[2].launch_command)
    assert [trial.parts[node].launch_command for node in (1, 2)] == ["orted one", "orted two"]
    trial.finish(1)
    trial.advance_until(lambda: trial.partials)
    assert not (trial.folder / "0" / wire.LAUNCH_ENDED_FILE).exists()
    trial.finish(2)
    trial.advance_until((trial.folder / "0" / wire.LAUNCH_ENDED_FILE).exists)


@pytest.mark.parametrize("asked", [0, 1])
def test_a_stop_that_one_node_gets_comes_to_all_and_all_stop_at_the_latest_call(
    make: Callable[..., Trial], asked: int
) -> None:
    trial = make(3)
    trial.meet()
    trial.write(asked, wire.STOP_FILE, "Enough.")
    trial.advance_until(lambda: all(trial.text(node, wire.STOP_FILE) == "Enough." for node in range(3)))
    for node, call in ((0, "4"), (1, "9"), (2, "7")):
        assert not trial.text(node, wire.STOP_AT_FILE)
        trial.write(node, wire.STOP_REACHED_FILE, call)
    trial.advance_until(lambda: all(trial.text(node, wire.STOP_AT_FILE) == "9" for node in range(3)))


def test_a_node_whose_ranks_have_ended_is_not_waited_for_at_a_stop(make: Callable[..., Trial]) -> None:
    trial = make(3)
    trial.meet()
    trial.finish(1)
    trial.parts[0].end_ranks()
    trial.write(0, wire.STOP_FILE, "Enough.")
    trial.advance_until(lambda: trial.text(2, wire.STOP_FILE))
    trial.write(2, wire.STOP_REACHED_FILE, "3")
    trial.advance_until(lambda: trial.text(2, wire.STOP_AT_FILE) == "3")


def test_messages_of_a_run_that_was_killed_are_forgotten(make: Callable[..., Trial]) -> None:
    trial = make(2)
    for name in (wire.STOP_REACHED_FILE, wire.STOP_AT_FILE, wire.LAUNCH_ENDED_FILE, f"{wire.LAUNCH_FILE}-h2"):
        trial.write(1, name, "1")
    trial.write(1, wire.STOP_FILE, "kept")
    trial.part(1)
    assert list((trial.folder / "1" / wire.CONTROL).iterdir()) == [trial.folder / "1" / wire.STOP_FILE]


@pytest.mark.parametrize("failed", [0, 1, 2])
def test_when_one_node_fails_the_others_end_with_its_reason(make: Callable[..., Trial], failed: int) -> None:
    trial = make(3)
    trial.meet()
    trial.finish(failed, "FAILED")
    trial.advance_until(lambda: all(trial.ends().values()))
    assert set(trial.ends().values()) == {f"{ENDED_BECAUSE}node {failed}: FAILED here."}


@pytest.mark.parametrize("lost", [0, 1])
def test_when_one_node_is_lost_the_others_end(make: Callable[..., Trial], lost: int) -> None:
    trial = make(3)
    trial.meet()
    trial.kill(lost)
    trial.advance_until(lambda: all(trial.ends().values()))
    assert set(trial.ends().values()) == {f"{ENDED_BECAUSE}node {lost}: it is lost."}


def test_a_node_that_has_succeeded_ends_no_other_and_node_0_waits_for_all(make: Callable[..., Trial]) -> None:
    trial = make(3)
    trial.meet()
    trial.finish(1)
    trial.advance_until(lambda: trial.partials == [(1, None)])
    assert set(trial.ends().values()) == {""}
    assert trial.parts[0].awaits_others
    trial.finish(2)
    trial.advance_until(lambda: not trial.parts[0].awaits_others)


def test_a_node_that_is_lost_before_all_have_met_may_come_again(make: Callable[..., Trial]) -> None:
    trial = make(3)
    second = trial.parts.pop(2)
    trial.advance_until(lambda: trial.parts[0]._links)  # type: ignore[attr-defined]
    trial.kill(1)
    trial.advance_until(lambda: not trial.parts[0]._links)  # type: ignore[attr-defined]
    trial.parts |= {1: trial.part(1), 2: second}
    trial.meet()
    assert set(trial.ends().values()) == {""}


def test_files_that_a_cell_puts_in_the_place_of_ours_hold_nobody(make: Callable[..., Trial]) -> None:
    trial = make(2)
    trial.meet()
    os.mkfifo(trial.folder / "0" / wire.STOP_FILE)
    trial.write(1, wire.STOP_FILE, "Enough.")
    trial.write(1, wire.STOP_REACHED_FILE, "no number")
    trial.parts[1].report("x")
    trial.advance_until(lambda: trial.partials)
    assert set(trial.ends().values()) == {""}


def test_a_node_that_fails_before_all_have_met_ends_the_others(make: Callable[..., Trial]) -> None:
    trial = make(3)
    trial.parts.pop(2).finish("FAILED", "")
    trial.advance_until(lambda: len(trial.parts[0]._links) == 1)  # type: ignore[attr-defined]
    trial.finish(1, "FAILED")
    trial.advance_until(lambda: trial.ends()[0])
    assert trial.ends()[0] == f"{ENDED_BECAUSE}node 1: FAILED here."


def test_an_elastic_trial_goes_on_without_a_node_and_lets_it_in_again(make: Callable[..., Trial]) -> None:
    trial = make(3, elastic=True)
    trial.meet()
    trial.kill(1)
    trial.advance_until(lambda: (1, None) in trial.partials)
    assert set(trial.ends().values()) == {""}
    trial.parts[1] = trial.part(1)
    trial.advance_until(lambda: trial.parts[1].endpoints)
    assert trial.parts[1].endpoints[0] == trial.parts[0].endpoints[0]
    assert not trial.parts[0].awaits_others
    trial.finish(0)
    trial.advance_until(lambda: all(trial.ends().values()))


def test_a_node_of_an_elastic_trial_whose_link_is_cut_connects_again_and_goes_on(make: Callable[..., Trial]) -> None:
    trial = make(2, elastic=True)
    trial.meet()
    before = trial.parts[0]._links[1]  # type: ignore[attr-defined]
    before._socket.shutdown(socket.SHUT_RDWR)
    trial.advance_until(lambda: trial.parts[0]._links.get(1) not in {None, before})  # type: ignore[attr-defined]
    assert set(trial.ends().values()) == {""}


def test_a_supervisor_wakes_up_when_another_node_says_something(make: Callable[..., Trial]) -> None:
    trial = make(2)
    trial.meet()
    link = trial.parts[0]._links[1]  # type: ignore[attr-defined]
    assert link.fd in trial.watch.watched
    assert not select.select([link.fd], [], [], 0)[0]
    trial.parts[1].report("x\n")
    assert select.select([link.fd], [], [], 30.0)[0]


def test_a_silent_link_is_given_up_by_the_system(make: Callable[..., Trial]) -> None:
    trial = make(2)
    trial.meet()
    for link in (trial.parts[0]._links[1], trial.parts[1]._link):  # type: ignore[attr-defined]
        assert link._socket.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        assert link._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 300_000
