"""Logs of containers: options, follow, rotation, and why there is none."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kubernetes import client
from urllib3.exceptions import ProtocolError

from tests.kubernetes.api.conftest import Double, client_of, wait_until
from tests.kubernetes.api.requests import Requests, core_path, pod
from tests.labs.kubernetes.objects.resources import PODS

LINES = ["one", "two", "three"]


def record(index: int, text: str, tag: str = "F") -> str:
    return f"2026-01-01T00:00:{index:02}.{index:09}Z stdout {tag} {text}\n"


@pytest.fixture
def running(double: Double) -> Double:
    double.store.create(PODS, "default", pod("p", nodeName="n1"))
    records = [record(index, line) for index, line in enumerate(LINES)]
    double.containers.log.write_text("".join(records))
    return double


def log(double: Double, **options: str) -> str:
    answer = Requests(double.api.kubeconfig())("GET", core_path("default", "pods", "p") + "/log", **options)
    return answer.body if answer.code == 200 else f"{answer.code} {answer.message}"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "one\ntwo\nthree\n"),
        ({"tailLines": "1"}, "three\n"),
        ({"tailLines": "0"}, ""),
        ({"limitBytes": "5"}, "one\nt"),
        ({"sinceTime": "2026-01-01T00:00:01Z"}, "two\nthree\n"),
        ({"sinceTime": "2026-01-01T01:00:02.000000002+01:00"}, "three\n"),
        ({"tailLines": "1", "timestamps": "true"}, "2026-01-01T00:00:02.000000002Z three\n"),
        ({"sinceSeconds": "60"}, ""),
        ({"container": "main"}, "one\ntwo\nthree\n"),
        ({"container": "other"}, "400 container other is not valid for pod p"),
        ({"previous": "true"}, '400 previous terminated container "main" in pod "p" not found'),
    ],
)
def test_options_of_a_log(running: Double, options: dict, expected: str) -> None:
    assert log(running, **options) == expected


def test_parts_of_a_line_are_one_line(running: Double) -> None:
    parts = [record(4, "long ", "P"), record(5, "line")]
    running.containers.log.write_text("".join(parts))
    assert log(running, timestamps="true") == "2026-01-01T00:00:04.000000004Z long line\n"


def test_the_log_before_a_restart_is_kept(running: Double) -> None:
    running.containers.previous = running.containers.folder / "before.log"
    running.containers.previous.write_text(record(0, "before"))
    assert log(running, previous="true") == "before\n"


def test_a_container_that_has_not_started_has_no_log(running: Double) -> None:
    running.containers.started = False
    assert log(running) == '400 container "main" in pod "p" is waiting to start: ContainerCreating'
    waiting = {"name": "main", "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    running.store.patch(PODS, "default", "p", {"status": {"containerStatuses": [waiting]}}, subresource="status")
    assert log(running).endswith("is waiting to start: trying and failing to pull image")


def test_a_pod_without_a_node_has_no_log(requests: Requests, namespace: str) -> None:
    requests("POST", core_path(namespace, "pods"), pod("p"))
    answer = requests("GET", core_path(namespace, "pods", "p") + "/log")
    assert (answer.code, answer.body) == (204, "")


def test_of_several_containers_one_has_to_be_named(double: Double) -> None:
    containers = [{"name": name, "image": "x"} for name in ("a", "b")]
    double.store.create(PODS, "default", pod("p", nodeName="n1", containers=containers))
    assert log(double) == "400 a container name must be specified for pod p, choose one of: [a b]"


def follow(double: Double) -> Iterator[bytes]:
    with client_of(double.api.kubeconfig()) as api_client:
        core = client.CoreV1Api(api_client)
        response = core.read_namespaced_pod_log("p", "default", follow=True, _preload_content=False)
        yield from response.stream()


def later(action: Callable[[], object]) -> None:
    threading.Timer(0.2, action).start()


def append(double: Double, index: int, text: str) -> None:
    with double.containers.log.open("a") as file:
        file.write(record(index, text))


def test_a_follow_tells_what_comes_until_the_container_ends(running: Double) -> None:
    running.containers.writing = True
    told = follow(running)
    assert next(told) == b"one\ntwo\nthree\n"
    append(running, 4, "four")
    assert next(told) == b"four\n"
    append(running, 5, "last")
    running.containers.writing = False
    assert b"".join(told) == b"last\n"


def test_a_follow_ends_when_the_log_is_rotated(running: Double) -> None:
    running.containers.writing = True
    told = follow(running)
    next(told)
    append(running, 4, "old")
    running.containers.log.rename(running.containers.folder / "0.log.1")
    running.containers.log.write_text(record(5, "new"))
    assert b"".join(told) == b"old\n"
    assert log(running) == "new\n"


def test_a_follow_ends_with_its_container_although_another_was_started_in_its_place(running: Double) -> None:
    running.containers.writing = True
    told = follow(running)
    next(told)
    append(running, 4, "last of the first")
    running.containers.restarts = 1
    running.containers.log.write_text(record(5, "of the second"))
    assert b"".join(told) == b"last of the first\n"
    assert log(running) == "of the second\n"


def test_a_stop_of_the_server_ends_a_follow(running: Double) -> None:
    running.containers.writing = True
    told = follow(running)
    next(told)
    running.api.stop()
    with pytest.raises(ProtocolError):
        next(told)


def test_a_client_that_goes_leaves_no_open_log(running: Double) -> None:
    running.containers.writing = True
    told = follow(running)
    next(told)
    assert is_open(running.containers.log)
    told.close()
    wait_until(lambda: not is_open(running.containers.log), "the log is still read")


def is_open(path: Path) -> bool:
    return any(os.path.realpath(number) == str(path) for number in Path("/proc/self/fd").iterdir())
