"""Pods of a trial find each other in clusters of IPv4, of IPv6 and of both."""

from __future__ import annotations

import json
import socket

import pytest

from jupyter_autotrain.agent.launchers.launchers import TorchrunLauncher
from jupyter_autotrain.agent.nodes import first_node
from jupyter_autotrain.agent.nodes.first_node import FirstNode
from jupyter_autotrain.agent.nodes.part import OtherNode
from jupyter_autotrain.agent.system import ports
from jupyter_autotrain.agent.trial import rank_layout
from jupyter_autotrain.testing import wait_until


class Unwatched:
    def add(self, fd: int) -> None:
        pass

    def remove(self, fd: int) -> None:
        pass


def has_ipv6() -> bool:
    try:
        ports.find_free(1, "::1")
    except OSError:
        return False
    return True


needs_ipv6 = pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")


@pytest.mark.parametrize(
    ("listens", "first"),
    [
        ("127.0.0.1", "127.0.0.1"),
        pytest.param("::1", "::1", marks=needs_ipv6),
        pytest.param("", "127.0.0.1", marks=needs_ipv6),
        pytest.param("", "::1", marks=needs_ipv6),
    ],
)
def test_two_pods_get_the_same_layout(monkeypatch: pytest.MonkeyPatch, listens: str, first: str) -> None:
    monkeypatch.setattr(first_node, "_own_address", lambda: listens)
    layout = {"nodes": 2, "first": [first, ports.find_free(1, first)[0]], "wait_s": 60}
    watch = Unwatched()
    parts = [
        FirstNode({"layout": {**layout, "node_rank": 0}}, "known", watch),
        OtherNode({"layout": {**layout, "node_rank": 1}}, "known", watch),
    ]

    def have_met() -> bool:
        for part in parts:
            part.advance()
        return all(part.endpoints for part in parts)

    wait_until(have_met, "both nodes")
    assert parts[0].endpoints == parts[1].endpoints
    assert [address for address, _ in parts[0].endpoints] == [first, first]
    for part in parts:
        part.finish("SUCCEEDED", "")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (["10.0.0.7"], "10.0.0.7"), (["fd00::7"], "fd00::7"), (["127.0.1.1"], ""), (["::1", "fd00::7"], "fd00::7"),
        (["10.0.0.7", "fd00::7"], ""),
    ],
)  # fmt: skip
def test_a_pod_listens_on_its_own_address_and_on_all_where_it_has_several(
    monkeypatch: pytest.MonkeyPatch, found: list[str], expected: str
) -> None:
    places = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (address, 0)) for address in found]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: places)
    assert first_node._own_address() == expected


def test_an_address_and_its_port_are_told_apart() -> None:
    endpoints = [["fd00::7", [29500, 29501]], ["10.0.0.8", [29500, 29501]]]
    trial = {"python": "python3", "workers": 1, "layout": {"endpoints": endpoints}}
    layout = rank_layout.of_trial(trial)
    assert layout.rank_endpoints() == ["[fd00::7]:29500", "10.0.0.8:29500"]
    assert "--rdzv-endpoint=[fd00::7]:29501" in json.dumps(TorchrunLauncher(trial, layout).command(["x"]))
