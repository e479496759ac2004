"""`trial.hints`: what reaches the scheduler, and that nothing of it disturbs the training."""

import http.server
import json
import threading

import pytest

from jupyter_autotrain.agent.ranks import scheduler_hints
from jupyter_autotrain.agent.ranks.scheduler_hints import PERFORMANCE, SchedulerHints

JOB = "team-a/at-1"


@pytest.fixture
def service(monkeypatch):
    """Yield a service that keeps what it is sent."""
    monkeypatch.setattr(scheduler_hints, "_TIMEOUT_S", 60.0)
    monkeypatch.setattr(scheduler_hints, "_PAUSE_S", 600.0)
    received = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_PUT(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((self.path, json.loads(body)))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield {"ADAPTDL_SUPERVISOR_URL": f"http://127.0.0.1:{server.server_port}", "ADAPTDL_JOB_ID": JOB}, received
    server.shutdown()
    server.server_close()
    thread.join()


def make(environ, notes=None, rank=0):
    return SchedulerHints(lambda level, text: notes.append((level, text)), environ, rank)


def test_hints_are_sent_by_adaptdls_names(service, monkeypatch):
    environ, received = service
    monkeypatch.setattr(scheduler_hints, "_PAUSE_S", 0.0)
    hints = make({**environ, "ADAPTDL_NUM_REPLICAS": "2"})
    hints(batch_size=32, max_batch_size=256, replica_batch_size=(8, 64), gradient_accumulation=True)
    hints(gradient=(0.5, 2.0), performance=dict.fromkeys(PERFORMANCE, 0.1), profiled_replicas=4)
    first = {
        "initBatchSize": 32, "globalBatchSize": 32, "maxBatchSize": 256, "localBszBounds": [8, 64],
        "gradientAccumulation": True, "maxProfiledReplicas": 2,
    }  # fmt: skip
    second = {
        **first, "maxProfiledReplicas": 4, "gradParams": {"norm": 0.5, "var": 2.0},
        "perfParams": dict.fromkeys(PERFORMANCE, 0.1),
    }  # fmt: skip
    assert received == [(f"/hints/{JOB}", first), (f"/hints/{JOB}", second)]


def test_the_same_hints_are_sent_once_and_changing_ones_not_at_every_step(service):
    environ, received = service
    hints = make(environ)
    for step in range(5):
        hints(batch_size=32)
        hints(gradient=(float(step), 1.0))
    assert len(received) == 1


def test_without_a_scheduler_nothing_happens():
    notes = []
    make({}, notes)(batch_size=32)
    make({"ADAPTDL_SUPERVISOR_URL": "http://127.0.0.1:1", "ADAPTDL_JOB_ID": JOB}, notes, rank=1)(batch_size=32)
    assert notes == []


def test_a_scheduler_that_does_not_answer_is_noted_once(monkeypatch, capsys):
    monkeypatch.setattr(scheduler_hints, "_PAUSE_S", 0.0)
    notes = []
    hints = make({"ADAPTDL_SUPERVISOR_URL": "http://127.0.0.1:1", "ADAPTDL_JOB_ID": JOB}, notes)
    hints(batch_size=32)
    hints(batch_size=64)
    (note,) = notes
    assert note[0] == "warning"
    assert "did not reach the scheduler" in note[1]
    assert "goes on as it is" in capsys.readouterr().err


def test_parameters_that_are_incomplete_are_left_out_with_a_note(service, capsys):
    environ, received = service
    notes = []
    make(environ, notes)(batch_size=8, performance={"alpha_c": 1.0})
    assert "perfParams" not in received[0][1]
    assert "lacks beta_c, alpha_n" in notes[0][1]
