"""Doubles of CVAT and Label Studio: their HTTP interfaces as their SDKs ask them, strict about tokens and requests."""

from __future__ import annotations

import io
import json
import re
import threading
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

CVAT_TOKEN = "cvat-token-of-the-test"
LABEL_STUDIO_TOKEN = "label-studio-token-of-the-test"
_ABOUT = {"name": "CVAT", "description": "", "version": "2.80.0", "logo_url": "", "subtitle": ""}
_DATE = "2026-01-01T00:00:00Z"
_PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360606060000000050001"
    "a5f645400000000049454e44ae426082"
)


class LabelServer(ThreadingHTTPServer):
    """Base of both doubles; `requests` are the methods and paths that came, `faults` what was wrong with them."""

    daemon_threads = True

    def __init__(self, authorization: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.authorization = authorization
        self.requests: list[str] = []
        self.faults: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"

    def answer(self, method: str, path: str, query: dict[str, str], request: _Request) -> object:
        """Return the JSON value or bytes of an answer, or (code, value)."""
        raise NotImplementedError


class _Request:
    """The head and body of a request."""

    def __init__(self, headers: Mapping[str, str], body: bytes) -> None:
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def parts(self) -> dict[str, tuple[str, bytes]]:
        """The parts of a form: by name the file name and content."""
        head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
        found: dict[str, tuple[str, bytes]] = {}
        for part in BytesParser(policy=HTTP).parsebytes(head + self.body).iter_parts():
            name = str(part.get_param("name", header="content-disposition"))
            content = part.get_payload(decode=True)
            assert isinstance(content, bytes)
            found[name] = (part.get_filename() or "", content)
        return found


class _Handler(BaseHTTPRequestHandler):
    server: LabelServer
    protocol_version = "HTTP/1.1"

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        address = urlsplit(self.path)
        self.server.requests.append(f"{self.command} {address.path}")
        found: object = (404, {"detail": "Not found."})
        is_public = address.path == "/api/server/about"  # asked before anybody logs in
        if self.headers.get("Authorization") != self.server.authorization and not is_public:
            found = (401, {"detail": "Authentication credentials were not provided."})
        else:
            try:
                request = _Request(dict(self.headers.items()), body)
                found = self.server.answer(self.command, address.path, dict(parse_qsl(address.query)), request)
            except (KeyError, ValueError, TypeError) as error:
                found = (400, {"detail": f"{type(error).__name__}: {error}"})
        code, value = found if isinstance(found, tuple) else (200, found)
        if code >= 400:
            self.server.faults.append(f"{code} {self.command} {self.path}: {value}")
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(code)
        is_json = not isinstance(value, bytes)
        self.send_header("Content-Type", "application/json" if is_json else "application/zip")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


class CvatDouble(LabelServer):
    """One task with labelled images; `label` changes it, `made` are the tasks that were added."""

    def __init__(self) -> None:
        super().__init__(f"Bearer {CVAT_TOKEN}")
        self.labels = {"cat-1.png": "cat", "dog-1.png": "dog", "dog-2.png": "dog"}
        self.changes = 0
        self.exports = 0
        self.made: dict[int, dict[str, Any]] = {}
        self._running: dict[str, int] = {}

    def label(self, image: str, name: str) -> None:
        """Label an image, as a person does in the browser."""
        self.labels[image] = name
        self.changes += 1

    def answer(self, method: str, path: str, query: dict[str, str], request: _Request) -> object:
        labels = [_label(number, name) for number, name in enumerate(["cat", "dog"], 1)]
        known: dict[str, Callable[[], object]] = {
            "GET /api/server/about": lambda: _ABOUT,
            "GET /api/tasks/12": lambda: _task(12, "pets", f"2026-01-01T00:00:{self.changes:02}Z"),
            "POST /api/tasks/12/dataset/export": lambda: self._begin_export(query),
            "GET /exports/12.zip": self._archive,
            "GET /api/labels": lambda: {"count": 2, "next": None, "previous": None, "results": labels},
            "GET /api/requests/export": lambda: self._request("export"),
            "GET /api/requests/create": lambda: self._request("create"),
        }
        found = known.get(f"{method} {path}")
        return self._new_task(method, path, request) if found is None else found()

    def _begin_export(self, query: dict[str, str]) -> object:
        if query != {"format": "COCO 1.0", "save_images": "True", "location": "local"}:
            raise ValueError(f"unexpected query {query}")
        self.exports += 1
        self._running["export"] = 0
        return 202, {"rq_id": "export"}

    def _request(self, name: str) -> object:
        """Answer that a request waits when it is first asked for."""
        asked = self._running[name]
        self._running[name] = asked + 1
        answer = {
            "status": "finished" if asked else "queued",
            "id": name,
            "operation": {"type": name, "target": "task", "task_id": 12},
            "created_date": _DATE,
            "message": "",
        }
        return {**answer, "result_url": f"{self.url}/exports/12.zip"} if name == "export" else answer

    def _archive(self) -> bytes:
        names = sorted(set(self.labels.values()))
        images = [{"id": number, "file_name": name} for number, name in enumerate(self.labels, 1)]
        annotations = []
        for number, name in enumerate(self.labels.values(), 1):
            box = {"bbox": [0, 0, 1, 1], "area": 1, "iscrowd": 0}
            annotations.append({"id": number, "image_id": number, "category_id": names.index(name) + 1, **box})
        coco = {
            "licenses": [{"name": "CC-BY-4.0", "id": 0, "url": ""}],
            "images": images,
            "annotations": annotations,
            "categories": [{"id": number, "name": name} for number, name in enumerate(names, 1)],
        }
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr("annotations/instances_default.json", json.dumps(coco))
            for name in self.labels:
                archive.writestr(f"images/default/{name}", _PIXEL)
        return content.getvalue()

    def _new_task(self, method: str, path: str, request: _Request) -> object:
        if (method, path) == ("POST", "/api/tasks"):
            spec = request.json
            if set(spec) != {"name", "labels"}:
                raise ValueError(f"unexpected task {spec}")
            number = 13 + len(self.made)
            self.made[number] = {"name": spec["name"], "labels": [one["name"] for one in spec["labels"]], "files": {}}
            return 201, _task(number, spec["name"], _DATE)
        if (found := re.fullmatch(r"/api/tasks/(\d+)", path)) and int(found[1]) in self.made:
            return _task(int(found[1]), self.made[int(found[1])]["name"], _DATE)
        if method == "POST" and (found := re.fullmatch(r"/api/tasks/(\d+)/data/?", path)):
            return self._upload(self.made[int(found[1])], request)
        return 404, {"detail": "Not found."}

    def _upload(self, task: dict[str, Any], request: _Request) -> object:
        if "Upload-Start" in request.headers:
            return 202, {}
        if "Upload-Multiple" in request.headers:
            files = [part for name, part in request.parts.items() if name.startswith("client_files[")]
            task["files"].update({name.rpartition("/")[2]: content for name, content in files})
            return {}
        if "Upload-Finish" in request.headers:
            self._running["create"] = 0
            return 202, {"rq_id": "create"}
        raise ValueError("an upload without its header")


def _task(number: int, name: str, updated: str) -> dict[str, Any]:
    return {
        "id": number, "name": name, "project_id": None, "updated_date": updated, "created_date": _DATE, "size": 3,
        "jobs": {"count": 1, "completed": 0, "validation": 0, "url": ""}, "labels": {"url": ""},
        "target_storage": None, "source_storage": None, "organization": None,
    }  # fmt: skip


def _label(number: int, name: str) -> dict[str, Any]:
    return {
        "id": number, "name": name, "color": "#ff0000", "type": "any", "attributes": [], "sublabels": [],
        "parent_id": None, "has_parent": False, "task_id": 12,
    }  # fmt: skip


class LabelStudioDouble(LabelServer):
    """One project of texts; `tasks` are its tasks, `imported` those that were added."""

    def __init__(self) -> None:
        super().__init__(f"Token {LABEL_STUDIO_TOKEN}")
        self.tasks = [_annotated(1, "good", "positive"), _annotated(2, "bad", "negative")]
        self.imported: list[dict[str, Any]] = []

    def answer(self, method: str, path: str, query: dict[str, str], request: _Request) -> object:
        if (method, path) == ("GET", "/api/projects/7/export") and query == {"export_type": "JSON"}:
            return json.dumps(self.tasks).encode()
        if (method, path) == ("GET", "/api/projects/7/"):
            config = '<View><Text name="text" value="$text"/><Choices name="c" toName="text"/></View>'
            return {"id": 7, "title": "reviews", "label_config": config}
        if (method, path) == ("POST", "/api/projects/7/import"):
            tasks = request.json
            if not all("text" in task["data"] for task in tasks):
                raise ValueError("a task without the variable of the labelling interface")
            self.imported += tasks
            return 201, {"task_count": len(tasks)}
        return 404, {"detail": "Not found."}


def _annotated(number: int, text: str, choice: str) -> dict[str, Any]:
    result = [{"type": "choices", "value": {"choices": [choice]}}]
    return {"id": number, "data": {"text": text}, "annotations": [{"id": number, "result": result}]}


@contextmanager
def serving(server: LabelServer) -> Iterator[LabelServer]:
    """Answer requests until the block ends."""
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
