"""Processes in containers, as the official client starts them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator

import pytest
from kubernetes import client, stream

from tests.kubernetes.api.conftest import Double, client_of
from tests.kubernetes.api.requests import Requests, core_path, pod
from tests.labs.kubernetes.objects.resources import PODS


@pytest.fixture
def core(double: Double) -> Iterator[client.CoreV1Api]:
    double.store.create(PODS, "default", pod("p", nodeName="n1"))
    with client_of(double.api.kubeconfig()) as api_client:
        yield client.CoreV1Api(api_client)


Start = Callable[..., stream.ws_client.WSClient]


@pytest.fixture
def start(core: client.CoreV1Api) -> Iterator[Start]:
    with contextlib.ExitStack() as stack:

        def started(*command: str, **options: object) -> stream.ws_client.WSClient:
            options = {"stdout": True, "stderr": True, "stdin": False, "_preload_content": False} | options
            connect = core.connect_get_namespaced_pod_exec
            process = stream.stream(connect, "p", "default", command=list(command), **options)
            stack.callback(process.sock.sock.close)
            return process

        yield started


def test_output_errors_and_exit_status_come_back_apart(start: Start) -> None:
    process = start("sh", "-c", "echo out; echo err >&2; exit 3")
    process.run_forever(timeout=60)
    assert (process.read_stdout(), process.read_stderr(), process.returncode) == ("out\n", "err\n", 3)


def test_a_process_reads_its_input(start: Start) -> None:
    process = start("head", "-c", "300000", stdin=True)
    for _ in range(3):
        process.write_stdin("x" * 100_000)
    process.run_forever(timeout=60)
    assert (len(process.read_stdout()), process.returncode) == (300_000, 0)


def test_without_input_a_process_reads_its_end(start: Start) -> None:
    process = start("cat")
    process.run_forever(timeout=60)
    assert process.returncode == 0


def test_the_end_of_the_input_alone_can_be_told(start: Start) -> None:
    process = start("cat", stdin=True)
    process.write_stdin("text")
    process.sock.send_binary(bytes([255, 0]))
    process.run_forever(timeout=60)
    assert (process.read_stdout(), process.returncode) == ("text", 0)


def test_a_terminal_has_the_size_of_the_clients(start: Start) -> None:
    process = start("sh", "-c", "read x; stty size", stdin=True, tty=True)
    process.write_channel(4, json.dumps({"Width": 100, "Height": 50}))
    process.write_stdin("\n")
    process.run_forever(timeout=60)
    assert process.read_stdout().split() == ["50", "100"]


def test_many_processes_that_say_nothing_hold_up_no_other(start: Start) -> None:
    quiet = [start("cat", stdin=True) for _ in range(12)]
    process = start("echo", "here")
    process.run_forever(timeout=60)
    assert process.read_stdout() == "here\n"
    assert all(other.is_open() for other in quiet)


def test_a_command_that_is_not_there_is_told(start: Start) -> None:
    process = start("no-such-command")
    process.run_forever(timeout=60)
    status = json.loads(process.read_channel(3))
    assert (status["status"], status["reason"]) == ("Failure", "InternalError")
    assert "no-such-command" in status["message"]


def test_a_pod_that_is_not_there_or_has_ended_is_refused_before_the_upgrade(double: Double) -> None:
    requests = Requests(double.api.kubeconfig())
    path = core_path("default", "pods", "p") + "/exec"
    assert requests("GET", path, command="true").code == 404
    double.store.create(PODS, "default", pod("p", nodeName="n1"))
    answer = requests("GET", path, command="true", container="other")
    assert (answer.code, answer.message) == (400, "container other is not valid for pod p")
    double.store.patch(PODS, "default", "p", {"status": {"phase": "Succeeded"}}, subresource="status")
    answer = requests("GET", path, command="true")
    assert answer.code == 400
    assert "current phase is Succeeded" in answer.message
