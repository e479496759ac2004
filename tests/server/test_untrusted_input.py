"""Nothing that is asked leads out of the home or is too large, and what trials write stays data."""

import json
import os
import socket

import pytest

from tests.server.jupyter import BASE_URL, problem_of
from tests.server.operations import OPERATIONS, address, body_members, path_parameters, query_parameters

SCRIPT = "</script><script>alert('x')</script><img src=x onerror=alert(1)>"
TRAVERSALS = ["..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "a%00b", "e%0a", "é", "a" * 65, "%ff"]
FILES = ("../../../../etc/passwd", "/etc/passwd", "..", "~/x", "a\x00b")
"""What a body or a query names instead; a path has it in the forms above."""
IN_PATH = [
    (method, path, name) for method, path in OPERATIONS for name in path_parameters(path)
]  # fmt: skip


@pytest.fixture(scope="module")
def document(server):
    return server.get("/openapi.json")


@pytest.mark.parametrize(("method", "path", "name"), IN_PATH)
def test_no_parameter_of_a_path_leads_out_of_the_home(server, filler, method, path, name):
    there(filler)
    for text in TRAVERSALS:
        values = {"experiment": "x3", name: text}
        status, body = raw(server, method, address(path, **values))
        assert status in {400, 404}, (text, status, body)
        assert b"root:" not in body


def test_no_parameter_of_a_query_or_a_body_leads_out_of_the_home(server, filler, document):
    there(filler)
    before = sorted(server.root.parent.rglob("passwd*"))
    asked = [operation for operation in OPERATIONS if operation != ("POST", "/manager")]
    for method, path in asked:
        target = address(path, experiment="x3")
        for name in query_parameters(document, method, path):
            for text in FILES:
                unharmed(server.ask(method, target, params={name: text}))
        for name in body_members(document, method, path):
            for text in FILES:
                unharmed(server.ask(method, target, json={name: text}))
    assert sorted(server.root.parent.rglob("passwd*")) == before


def unharmed(answer):
    """Refused, or answered with data of the home."""
    assert answer.status_code < 500, answer.text
    assert "root:" not in answer.text


def there(filler):
    """Add an experiment that every address below can be about."""
    if not filler.store.ids() & {"x3"}:
        filler.done("x3")


def raw(server, method, path):
    """Ask with a path exactly as it is; clients tidy it up."""
    host, _, port = server.url.split("/")[2].partition(":")
    text = f"{method} {BASE_URL}jupyter-autotrain/api{path} HTTP/1.1\r\nHost: {host}:{port}\r\n"
    text += f"Authorization: token {server.token}\r\nConnection: close\r\n"
    text += "\r\n" if method == "GET" else "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
    with socket.create_connection((host, int(port)), timeout=120) as connection:
        connection.sendall(text.encode("latin-1"))
        answer = b""
        while block := connection.recv(65_536):
            answer += block
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def test_a_link_that_a_trial_made_is_not_followed(server, filler):
    filler.done("x4")
    log = filler.file("x4", 1, "stdout", b"")
    log.unlink()
    log.symlink_to("/etc/passwd")
    assert problem_of(server.ask("GET", "/experiments/x4/trials/1/log"))["status"] == 409
    log.unlink()
    os.mkfifo(log)
    assert problem_of(server.ask("GET", "/experiments/x4/trials/1/log"))["status"] == 409


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/experiments?limit=100000", 400),
        ("/experiments?limit=0", 400),
        ("/experiments?offset=-1", 400),
        ("/experiments?text=" + "x" * 300, 400),
        ("/experiments?text=" + "x" * 9000, 400),
        ("/experiments?text=a&text=b", 400),
        ("/experiments?unknown=1", 400),
        ("/experiments/x5/series?metric=a&max_points=1000000000", 400),
        ("/experiments/x5/series?metric=a&trials=1,,2", 400),
        ("/experiments/x5/trials?limit=1000000", 400),
        ("/experiments/x5/trials/1/log?most_bytes=100000000000", 400),
    ],
)
def test_oversized_and_unknown_queries_are_refused(server, path, status):
    answer = server.ask("GET", path)
    assert problem_of(answer)["status"] == status


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_no_operation_takes_a_query_or_a_body_without_end(server, filler, method, path):
    there(filler)
    target = address(path, experiment="x3")
    unknown = server.ask(method, f"{target}?unknown=1", json={} if method != "GET" else None)
    assert problem_of(unknown)["status"] in {400, 404}
    long = server.ask(method, f"{target}?unknown={'x' * 9000}")
    assert problem_of(long)["status"] == 400
    if method in {"POST", "PATCH"}:
        large = server.ask(method, target, data=json.dumps({"unknown": "x" * 3_000_000}))
        assert problem_of(large)["status"] == 413


def test_an_oversized_body_is_refused(server, filler):
    filler.done("x6")
    for size in (70_000, 3_000_000):
        assert problem_of(server.ask("PATCH", "/experiments/x6", json={"note": "x" * size}))["status"] == 413
    assert problem_of(server.ask("PATCH", "/experiments/x6", json={"note": "x" * 4001}))["status"] == 400
    assert problem_of(server.ask("PATCH", "/experiments/x6", data="[" * 30_000))["status"] == 400
    assert problem_of(server.ask("PATCH", "/experiments/x6", data="[]"))["status"] == 400
    assert problem_of(server.ask("PATCH", "/experiments/x6", json={"tags": ["x"] * 21}))["status"] == 400


def test_script_in_names_logs_parameters_and_notes_stays_data(server, filler):
    filler.experiment("x7", name=SCRIPT)
    filler.begin("x7", 1, optimizer=SCRIPT)
    filler.file("x7", 1, "stdout", SCRIPT.encode())
    filler.end("x7", 1, "FAILED", SCRIPT)
    assert server.ask("PATCH", "/experiments/x7", json={"note": SCRIPT}).json()["note"] == SCRIPT
    for path in ("/experiments/x7", "/experiments/x7/trials", "/experiments/x7/trials/1/log", "/experiments"):
        answer = server.ask("GET", path)
        assert answer.headers["Content-Type"] == "application/json"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Cache-Control"] == "no-store"
        assert "alert" in answer.text


def test_a_picture_with_a_script_runs_nothing(server, filler):
    filler.done("x8")
    markup = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
    filler.file("x8", 1, "outputs/pictures/0001.svg", markup)
    answer = server.ask("GET", "/experiments/x8/trials/1/attempts/1/pictures/0001.svg")
    assert answer.headers["Content-Type"] == "image/svg+xml"
    assert "sandbox" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


HALF = "a\\ud800\\udfff\\ud800"
BODIES = {
    "/experiments/h1": '{"note": "HALF", "tags": ["HALF"]}',
    "/profiles": '{"profile": "HALF", "type": "ssh", "texts": {"user": "HALF"}, "yaml": {"hosts": "[HALF]"}}',
    "/header/faults": '{"text": "%%autotrain HALF\\nname: HALF\\n---\\nx = \'HALF\'", "folder": "HALF"}',
    "/header/completions": '{"text": "%%autotrain\\nHALF", "cursor": 3}',
    "/experiments/h1/actions": '{"action": "stop", "HALF": 1}',
    "/project": '{"digest": "HALF"}',
}


def test_half_a_character_in_a_body_is_refused(server, filler):
    """JSON can spell what UTF-8 cannot hold."""
    filler.done("h1")
    for path, body in BODIES.items():
        method = "PATCH" if path == "/experiments/h1" else "POST"
        answer = server.ask(method, path, data=body.replace("HALF", HALF))
        assert answer.status_code in {200, 400, 404, 409}, (path, answer.text)
        json.loads(answer.text)
    assert server.get("/experiments/h1")["note"] == ""
