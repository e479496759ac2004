"""The pods of a trial on several nodes: how they meet, and what they pass on."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from jupyter_autotrain.backends.kubernetes_pod import first_node, pod_part, rendezvous
from jupyter_autotrain.backends.kubernetes_pod.peer_link import accept
from jupyter_autotrain.backends.kubernetes_pod.peers import PeersError
from jupyter_autotrain.backends.kubernetes_pod.pod_part import StatusFile
from jupyter_autotrain.backends.kubernetes_pod.rendezvous import Part
from jupyter_autotrain.core import wire
from jupyter_autotrain.worker import ports

RANKS = {"rank": "RANK", "first_address": "FIRST", "offset": "OFFSET"}
END = wire.PARTIALS_END


def never() -> bool:
    return False


class Pods:
    """Pods of a trial in one process, each with its folder."""

    def __init__(self, folder: Path, nodes: int, *, elastic: bool = False, workers: int = 2) -> None:
        self.folder = folder
        self.workers = workers
        self.options = {"nodes": nodes, "elastic": elastic, "variables": RANKS}
        self.layouts: dict[int, Any] = {}
        self.parts: dict[int, Part] = {node: self.part(node) for node in range(nodes)}

    def part(self, node: int, token: str = "known") -> Part:
        (self.folder / str(node) / wire.CONTROL).mkdir(parents=True, exist_ok=True)
        environ = {"RANK": str(node), "FIRST": "127.0.0.1"}
        return rendezvous.of_pod(self.options, environ, self.workers, token)

    def meet(self, *nodes: int) -> None:
        threads = [threading.Thread(target=self.join, args=(node,)) for node in nodes or self.parts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)

    def join(self, node: int) -> None:
        self.layouts[node] = self.parts[node].join(never)

    def status(self, node: int) -> StatusFile:
        return StatusFile(str(self.folder / str(node)))

    def say(self, node: int, state: str, **more: Any) -> None:
        text = json.dumps({"state": state, "reason": f"{state} here.", **more})
        wire.write_atomically(str(self.folder / str(node) / wire.STATUS_FILE), text.encode())

    def advance_until(self, condition: Callable[[], object]) -> None:
        end_s = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < end_s
            for node, part in self.parts.items():
                part.advance(self.status(node))
            time.sleep(0.005)

    def text(self, node: int, name: str) -> str:
        with contextlib.suppress(FileNotFoundError):
            return (self.folder / str(node) / name).read_text()
        return ""

    def asked_to_end(self, node: int) -> str:
        found = self.text(node, wire.CANCEL_FILE)
        return json.loads(found)["reason"] if found else ""

    def finish(self, *nodes: int) -> None:
        for node in nodes or list(self.parts):
            self.parts.pop(node).finish(self.status(node))


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Pods]]:
    monkeypatch.setattr(first_node, "_listening_address", lambda: "127.0.0.1")
    monkeypatch.setattr(pod_part, "PORT", ports.find_free(1)[0])
    monkeypatch.setattr(pod_part, "PAUSE_S", 0.01)
    made: list[Pods] = []

    def make(nodes: int, **options: Any) -> Pods:
        made.append(Pods(tmp_path, nodes, **options))
        return made[-1]

    yield make
    for pods in made:
        pods.finish()


def test_all_pods_get_the_same_layout_in_the_order_of_their_numbers(make: Callable[..., Pods]) -> None:
    pods = make(3)
    pods.meet()
    assert [pods.layouts[node]["node_rank"] for node in range(3)] == [0, 1, 2]
    first = pods.layouts[0]["endpoints"]
    assert all(layout["endpoints"] == first for layout in pods.layouts.values())
    assert [address for address, _ in first] == ["127.0.0.1"] * 3
    assert {len(free) for _, free in first} == {pods.workers + 1}


def test_the_number_of_a_pod_is_its_variable_and_the_offset() -> None:
    options = {"variables": RANKS}
    assert rendezvous.node_of(options, {"RANK": "2", "OFFSET": "1"}) == 3
    assert rendezvous.node_of(options, {"RANK": "2"}) == 2
    assert rendezvous.node_of({"variables": {"rank": "", "offset": ""}}, {}) == 0


def test_a_pod_without_the_token_is_not_let_in(make: Callable[..., Pods]) -> None:
    pods = make(2)
    stranger = pods.part(1, token="guessed")
    stop = threading.Event()

    def try_in_vain() -> None:
        with pytest.raises(PeersError, match="does not answer"):
            stranger.join(stop.is_set)

    thread = threading.Thread(target=try_in_vain)
    thread.start()
    with socket.create_connection(("127.0.0.1", pod_part.PORT)) as other:
        other.sendall(b"GET / HTTP/1.1\r\n\r\n")
        pods.meet()
    stop.set()
    thread.join(timeout=60)
    assert pods.layouts[1]["endpoints"] == pods.layouts[0]["endpoints"]


def test_a_pod_that_is_told_to_end_waits_no_longer(make: Callable[..., Pods]) -> None:
    pods = make(2)
    with pytest.raises(PeersError, match="Only 1 of 2 nodes"):
        pods.parts[0].join(lambda: True)


def test_what_ranks_report_together_comes_to_node_0_whole(make: Callable[..., Pods]) -> None:
    pods = make(2)
    pods.meet()
    path = pods.folder / "1" / "partials-1"
    path.write_text('["p", 1, "loss"]\n')
    pods.advance_until(lambda: pods.text(0, "partials-1") == '["p", 1, "loss"]\n')
    with path.open("a") as file:
        file.write('["p", 2, "ä"]\n')
    pods.finish(1)
    pods.advance_until(lambda: pods.text(0, "partials-1").endswith(END))
    assert pods.text(0, "partials-1") == f'["p", 1, "loss"]\n["p", 2, "ä"]\n{END}'


def test_mpiexec_on_node_0_has_its_daemons_run_on_the_others(make: Callable[..., Pods]) -> None:
    pods = make(3)
    pods.meet()
    pods.say(0, "RUNNING", launch={"1": "orted one", "2": "orted two"})
    pods.advance_until(lambda: pods.text(1, wire.LAUNCH_FILE) and pods.text(2, wire.LAUNCH_FILE))
    assert [pods.text(node, wire.LAUNCH_FILE) for node in (1, 2)] == ["orted one", "orted two"]
    pods.say(1, "SUCCEEDED")
    pods.say(2, "SUCCEEDED")
    pods.finish(1, 2)
    pods.advance_until((pods.folder / "0" / wire.LAUNCH_ENDED_FILE).exists)


def test_what_node_0_asks_right_after_it_has_told_the_layout_is_done(make: Callable[..., Pods]) -> None:
    pods = make(2)
    pods.parts.pop(0).finish(pods.status(0))
    with socket.create_server(("127.0.0.1", pod_part.PORT)) as listener:
        thread = threading.Thread(target=pods.join, args=(1,))
        thread.start()
        connected, _ = listener.accept()
    accept(connected, "known")
    connected.sendall(b'{"endpoints": [["127.0.0.1", []]]}\n{"launch": "orted one"}\n')
    thread.join(timeout=60)
    pods.advance_until(lambda: pods.text(1, wire.LAUNCH_FILE) == "orted one")
    connected.close()


def test_the_other_nodes_may_end_after_the_supervisor_of_node_0_has_cleared_its_control_folder(
    make: Callable[..., Pods],
) -> None:
    pods = make(2)
    pods.meet()
    pods.say(0, "RUNNING", launch={"1": "orted one"})
    pods.advance_until(lambda: pods.text(1, wire.LAUNCH_FILE))
    (pods.folder / "0" / wire.CONTROL).rmdir()
    pods.say(1, "SUCCEEDED")
    pods.finish(1)
    first = pods.parts[0]
    pods.advance_until(lambda: first._ended)
    first.advance(pods.status(0))
    assert not (pods.folder / "0" / wire.CONTROL).exists()


@pytest.mark.parametrize("failed", [0, 1, 2])
def test_when_one_node_fails_the_others_end_with_its_reason(make: Callable[..., Pods], failed: int) -> None:
    pods = make(3)
    pods.meet()
    pods.say(failed, "FAILED")
    if failed:
        pods.finish(failed)
    others = [node for node in range(3) if node != failed]
    pods.advance_until(lambda: all(pods.asked_to_end(node) for node in others))
    assert {pods.asked_to_end(node) for node in others} == {f"{pod_part.ENDED_BECAUSE}node {failed}: FAILED here."}
    assert not pods.asked_to_end(failed)


@pytest.mark.parametrize("lost", [0, 1])
def test_when_one_pod_is_lost_the_others_end(make: Callable[..., Pods], lost: int) -> None:
    pods = make(3)
    pods.meet()
    part = pods.parts.pop(lost)
    links = part._links.values() if lost == 0 else [part._link]
    for link in list(links):
        link.close()
    pods.advance_until(lambda: all(pods.asked_to_end(node) for node in pods.parts))
    assert f"node {lost}: its pod is lost" in pods.asked_to_end(2)


def test_a_node_that_has_succeeded_ends_no_other(make: Callable[..., Pods]) -> None:
    pods = make(2)
    pods.meet()
    pods.say(1, "SUCCEEDED")
    pods.finish(1)
    pods.advance_until(lambda: pods.text(0, "partials-1").endswith(END))
    assert not pods.asked_to_end(0)


def test_an_elastic_trial_goes_on_without_a_node_and_lets_it_in_again(make: Callable[..., Pods]) -> None:
    pods = make(3, elastic=True)
    pods.meet()
    pods.parts.pop(1)._link.close()
    pods.advance_until(lambda: pods.text(0, "partials-1").endswith(END))
    assert not pods.asked_to_end(0)
    assert not pods.asked_to_end(2)
    again = pods.part(1)
    thread = threading.Thread(target=lambda: pods.layouts.update({1: again.join(never)}))
    del pods.layouts[1]
    thread.start()
    pods.advance_until(lambda: 1 in pods.layouts)
    thread.join(timeout=60)
    pods.parts[1] = again
    assert pods.layouts[1]["node_rank"] == 1
    assert pods.layouts[1]["endpoints"][0] == pods.layouts[0]["endpoints"][0]
    pods.say(0, "SUCCEEDED")
    pods.advance_until(lambda: pods.asked_to_end(1) and pods.asked_to_end(2))
