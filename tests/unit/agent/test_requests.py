"""The requests about a trial's files: a host and a pod answer them by the same code, over a byte stream."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jupyter_autotrain.agent.pods import places
from jupyter_autotrain.agent.pods import requests as pod_requests
from jupyter_autotrain.agent.service.request_loop import Handlers, RequestLoop
from jupyter_autotrain.agent.service.service import Service

Ask = Callable[..., dict[str, Any]]


def asking(handlers: Handlers) -> Ask:
    """Give the answer to one line."""

    def ask(do: str, **content: object) -> dict[str, Any]:
        output = io.BytesIO()
        line = json.dumps({"id": 7, "do": do, "job": "home/e1-1-1", **content}).encode() + b"\n"
        RequestLoop(output).answer(line, handlers)
        answer: dict[str, Any] = json.loads(output.getvalue())
        assert answer.pop("id") == 7
        return answer

    return ask


@pytest.fixture(params=["host", "pod"])
def ask(request: pytest.FixtureRequest, tmp_path: Path) -> Ask:
    if request.param == "pod":
        return asking(pod_requests.handlers(str(tmp_path)))
    (tmp_path / "jobs" / "home" / "e1-1-1").mkdir(parents=True)
    return asking(Service(tmp_path).handlers)


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_a_file_is_put_grown_listed_and_read_from_anywhere(ask: Ask) -> None:
    assert ask("put", path="control/stop", data=text(b"abc")) == {"ok": None}
    assert ask("append", path="control/stop", offset=3, data=text(b"def")) == {"ok": 6}
    assert ask("append", path="control/stop", offset=3, data=text(b"def")) == {"ok": 6}  # it was there
    assert ask("append", path="control/stop", offset=9, data=text(b"gap")) == {"ok": 6}
    assert ask("list", path=".") == {"ok": {"control": -1, "control/stop": 6}}
    assert ask("list", path="outputs") == {"ok": {}}
    assert ask("get", path="control/stop", offset=2) == {"ok": text(b"cdef")}
    assert ask("get", path="control/stop", offset=2, most_bytes=2) == {"ok": text(b"cd")}


@pytest.mark.parametrize("do", ["put", "append", "list", "get"])
def test_nothing_outside_of_the_trial_is_touched(ask: Ask, tmp_path: Path, do: str) -> None:
    found = ask(do, path="../../../../other", offset=0, data=text(b"abc"))
    assert "other" in found["failure"][0]
    assert not list(tmp_path.parent.glob("other"))


def test_whatever_is_asked_has_an_answer(ask: Ask) -> None:
    assert "No such file" in ask("get", path="nowhere", offset=0)["failure"][0]
    assert "unheard" in ask("unheard")["failure"][0]
    assert "path" in ask("list")["failure"][0]


def test_a_pod_tells_of_its_own_files_too(tmp_path: Path) -> None:
    (tmp_path / places.STATES).write_bytes(b"{}\n")
    ask = asking(pod_requests.handlers(str(tmp_path)))
    assert ask("get", path=places.STATES, offset=0) == {"ok": text(b"{}\n")}
