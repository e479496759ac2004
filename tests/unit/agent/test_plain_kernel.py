"""The kernel of a session at a place without ipykernel."""

from __future__ import annotations

import json
import time

import pytest

from jupyter_autotrain.agent.session.messages import message
from jupyter_autotrain.agent.session.plain_kernel import PlainKernel

DEADLINE_S = 120.0


class Asked:
    """A kernel that is asked for one thing after the other."""

    def __init__(self, directory):
        self.kernel = PlainKernel(str(directory))

    def run(self, code, at=lambda said: None):
        """Return what is said about a cell: pairs of kind and content."""
        request = message("shell", "execute_request", {"code": code, "silent": False})
        self.kernel.send(request)
        said = []
        deadline_s = time.monotonic() + DEADLINE_S
        while ("status", {"execution_state": "idle"}) not in said:
            assert time.monotonic() < deadline_s
            for one in self.kernel.receive(0.1):
                assert one["parent_header"]["msg_id"] == request["header"]["msg_id"]
                said.append((one["header"]["msg_type"], one["content"]))
                at(said[-1])
        return said

    def text(self, code):
        return "".join(content["text"] for kind, content in self.run(code) if kind == "stream")


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    directory = tmp_path_factory.mktemp("trial")
    (directory / "trial.json").write_text(json.dumps({"bundle": "", "directory": str(directory), "script": "main.py"}))
    asked = Asked(directory)
    yield asked
    asked.kernel.close()


def content_of(said, kind):
    (content,) = [content for one, content in said if one == kind]
    return content


def test_a_cell_keeps_its_names_and_tells_its_text_and_its_value(kernel):
    said = kernel.run("import sys\ncount = 41\nprint('out')\nprint('err', file=sys.stderr)\ncount + 1")
    assert [content["name"] for kind, content in said if kind == "stream" and content["text"].strip()] == [
        "stdout",
        "stderr",
    ]
    assert content_of(said, "execute_result")["data"] == {"text/plain": "42"}
    assert content_of(said, "execute_reply")["status"] == "ok"
    assert kernel.text("print(count, _)") == "41 42\n"
    assert kernel.text("import asyncio\nprint(await asyncio.sleep(0, 'waited'))") == "waited\n"


def test_a_value_is_shown_in_the_forms_that_it_has(kernel):
    code = "class Table:\n    def _repr_html_(self): return '<b>1</b>'\n    def __repr__(self): return 'one'\n"
    said = kernel.run(f"{code}display(Table())\nTable()")
    forms = {"text/plain": "one", "text/html": "<b>1</b>"}
    assert content_of(said, "display_data")["data"] == content_of(said, "execute_result")["data"] == forms


def test_an_exception_has_the_lines_of_the_cell_and_none_of_the_kernel(kernel):
    told = content_of(kernel.run("def half(x):\n    return x / 0\nhalf(1)"), "error")
    assert told["ename"] == "ZeroDivisionError"
    assert "    return x / 0" in told["traceback"]
    assert not any("plain_kernel" in line for line in told["traceback"])
    assert content_of(kernel.run("1 +"), "error")["ename"] == "SyntaxError"


def test_an_interrupt_ends_the_cell_and_not_the_kernel(kernel):
    def interrupt(said):
        if said[0] == "stream" and "runs" in said[1]["text"]:
            kernel.kernel.interrupt()

    said = kernel.run("import time\nkept = 1\nprint('runs')\nwhile True:\n    time.sleep(0.01)", interrupt)
    assert content_of(said, "error")["ename"] == "KeyboardInterrupt"
    kernel.kernel.interrupt()  # between cells it does nothing
    assert kernel.text("print(kept)") == "1\n"
