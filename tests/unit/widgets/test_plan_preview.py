"""The preview of a plan on the Python side: what it draws, how it plans anew, what a place without widgets gets."""

import json
import threading
import time

import pytest

from jupyter_autotrain.errors import InfeasibleError
from jupyter_autotrain.parallel import api
from jupyter_autotrain.widgets.plan import LatestOnly, PlanView, show_plan
from tests import example_graphs

DEADLINE_S = 60.0


@pytest.fixture(scope="module")
def plan():
    graph = example_graphs.gpt(width=128, layers=2, heads=4, sequence=64, batch=16, vocabulary=512)
    return api.plan(graph, None, "4xH100", search="recursive_programming", simplicity=0)


class Recorded(PlanView):
    """A view that keeps what it would send."""

    def __init__(self, plan):
        self.sent = []
        self.arrived = threading.Condition()
        super().__init__(plan)

    def send(self, content, buffers=None):
        with self.arrived:
            self.sent.append(json.loads(json.dumps(content)))
            self.arrived.notify_all()

    def receive(self, **content):
        self._receive(self, content, [])

    def answer(self, test):
        with self.arrived:
            assert self.arrived.wait_for(lambda: any(map(test, self.sent)), DEADLINE_S)
            return next(filter(test, self.sent))


@pytest.fixture
def view(plan):
    opened = Recorded(plan)
    yield opened
    opened.close()


def request(seq, devices=4, bandwidth=1.0, memory_bytes=80e9):
    return {"kind": "replan", "seq": seq, "devices": devices, "bandwidth": bandwidth, "memory_bytes": memory_bytes}


def test_the_view_is_the_plan_in_plain_json(plan, view):
    assert view.view == json.loads(json.dumps(plan.view()))
    assert view.view["mesh"]["shape"] == list(plan.mesh.shape)


def test_a_request_is_answered_with_the_plan_of_the_other_machine(plan, view):
    view.receive(**request(1, devices=2, bandwidth=0.5))
    answer = view.answer(lambda sent: sent.get("seq") == 1)
    expected = plan.what_if(devices=2, bandwidth=0.5, memory=80e9)
    assert answer["kind"] == "plan"
    assert answer["view"]["cluster"]["devices"] == 2
    assert answer["view"]["cost"]["step_s"] == pytest.approx(expected.cost.step_s)
    assert answer["seconds"] > 0


def test_a_request_may_be_for_other_inputs(plan, view):
    assert view.view["inputs"] == {"batch": 16, "sequence": None}
    view.receive(**request(2), batch=32, sequence=None)
    answer = view.answer(lambda sent: sent.get("seq") == 2)
    assert answer["view"]["inputs"] == {"batch": 32, "sequence": None}
    expected = plan.what_if(devices=4, memory=80e9, batch=32)
    assert answer["view"]["cost"]["step_s"] == pytest.approx(expected.cost.step_s)


def test_memory_that_is_too_small_is_refused_with_the_least_that_would_do(plan, view):
    with pytest.raises(InfeasibleError) as refused:
        plan.what_if(memory=1e5)
    view.receive(**request(3, memory_bytes=1e5))
    answer = view.answer(lambda sent: sent.get("seq") == 3)
    assert answer["kind"] == "refused"
    assert answer["text"] == str(refused.value)


def test_an_op_is_explained_and_an_unknown_one_is_told(plan, view):
    op = next(node["op"] for node in view.view["nodes"] if node["parameters"])
    view.receive(kind="explain", op=op, seq=0)
    answer = view.answer(lambda sent: sent["kind"] == "explanation")
    told = plan.explain(op)
    assert answer["text"] == told.why
    assert answer["heads"] == list(told.table.heads)
    assert answer["rows"] == [list(row) for row in told.table.rows]
    view.receive(kind="explain", op="no such op", seq=0)
    assert "no op 'no such op'" in view.answer(lambda sent: sent.get("op") == "no such op")["text"]


def test_an_op_is_explained_for_the_plan_that_the_page_shows(plan, view):
    op = next(node["op"] for node in view.view["nodes"] if node["parameters"])
    view.receive(**request(5, devices=2))
    view.answer(lambda sent: sent.get("seq") == 5)
    for seq, shown in ((5, plan.what_if(devices=2, memory=80e9)), (0, plan)):
        view.receive(kind="explain", op=op, seq=seq)
        answer = view.answer(lambda sent, seq=seq: sent["kind"] == "explanation" and sent["seq"] == seq)
        assert answer["text"] == shown.explain(op).why


def test_the_newest_request_is_run_and_those_before_it_are_dropped():
    begun = threading.Event()
    go = threading.Event()
    done = []

    def work(request):
        begun.set()
        assert go.wait(DEADLINE_S)
        done.append(request["seq"])

    latest = LatestOnly(work, "test")
    latest.put({"seq": 0})
    assert begun.wait(DEADLINE_S)
    for seq in range(1, 50):
        latest.put({"seq": seq})
    go.set()
    deadline = time.monotonic() + DEADLINE_S
    while 49 not in done and time.monotonic() < deadline:
        begun.wait(0.01)
    assert done == [0, 49]


def test_a_terminal_gets_the_text(plan, capsys):
    assert show_plan(plan) is None
    assert capsys.readouterr().out.strip() == repr(plan).strip()
