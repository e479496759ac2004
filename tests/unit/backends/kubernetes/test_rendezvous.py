"""Tests of how the pods of a trial find each other where they have no names."""

import http.server
import json
import threading

import pytest

from jupyter_autotrain.agent.pods import rendezvous


@pytest.fixture
def service():
    """AdaptDL's service, which answers twice that a pod is missing."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(200 if len(asked) > 2 else 408)
            self.end_headers()
            if len(asked) > 2:
                self.wfile.write(json.dumps(["10.0.0.1", "10.0.0.2"]).encode())

        def log_message(self, *args):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()
    thread.join()


def test_adaptdls_service_is_asked_until_all_pods_of_this_group_have_an_address(service, monkeypatch):
    monkeypatch.setattr(rendezvous, "_PAUSE_S", 0.01)
    url, asked = service
    environ = {"ADAPTDL_SUPERVISOR_URL": url, "ADAPTDL_JOB_ID": "team-a/at-1", "ADAPTDL_NUM_RESTARTS": "3"}
    assert rendezvous.addresses(rendezvous.ADAPTDL, environ, 30.0) == ["10.0.0.1", "10.0.0.2"]
    assert asked == ["/discover/team-a/at-1/3"] * 3


def test_a_service_that_is_not_there_is_told_with_its_address():
    with pytest.raises(rendezvous.PeersError, match=r"http://127\.0\.0\.1:1/discover/a/b/0.*within 0.05 s"):
        rendezvous.addresses(
            rendezvous.ADAPTDL, {"ADAPTDL_SUPERVISOR_URL": "http://127.0.0.1:1", "ADAPTDL_JOB_ID": "a/b"}, 0.05
        )


def framework(*roles):
    statuses = []
    for role in roles:
        tasks = [{"index": index, "attemptStatus": {"podIP": address}} for index, address in enumerate(role)]
        statuses.append({"name": "x", "taskStatuses": tasks})
    return json.dumps({"status": {"attemptStatus": {"taskRoleStatuses": statuses}}})


def test_the_barrier_has_written_down_the_addresses_role_by_role(tmp_path, monkeypatch):
    path = tmp_path / "framework.json"
    monkeypatch.setattr(rendezvous, "BARRIER_FILE", str(path))
    path.write_text(framework(["10.0.0.1"], ["10.0.0.2", "10.0.0.3"]))
    assert rendezvous.addresses("frameworkbarrier", {}) == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    path.write_text(framework(["10.0.0.1", None]))
    with pytest.raises(rendezvous.PeersError, match="1 of 2 pods without an address"):
        rendezvous.addresses("frameworkbarrier", {})
    path.unlink()
    with pytest.raises(rendezvous.PeersError, match="left no addresses"):
        rendezvous.addresses("frameworkbarrier", {})
