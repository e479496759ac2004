"""A web server for tests: takes PUT and DELETE; where it is told keys, it is one of S3.

Then it refuses what is not signed as S3 wants it, and lists a bucket (`list-type=2`) in small pages.
"""

from __future__ import annotations

import hashlib
import html
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote

from jupyter_autotrain.agent.objects.remote_files import Credentials, Request

_PAGE = 3  # names
_SIGNED = re.compile(r"Credential=([^/]+)/(\d+)/([^/]+)/s3/aws4_request,SignedHeaders=([^,]+),Signature=(\w+)")


class FileServer(ThreadingHTTPServer):
    """Files by their path; `faults` are codes that the next requests are answered with."""

    daemon_threads = True

    def __init__(
        self, credentials: Credentials | None = None, authorization: str = "", host: str = "127.0.0.1"
    ) -> None:
        super().__init__((host, 0), _Handler)
        self.files: dict[str, bytes] = {}
        self.faults: list[int] = []
        self.requests: list[tuple[str, str]] = []
        self.credentials = credentials
        self.authorization = authorization
        self.url = f"http://{host}:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: FileServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._give(has_body=True)

    def do_HEAD(self) -> None:
        self._give(has_body=False)

    def do_PUT(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        if not self._is_refused(data):
            self.server.files[self.path] = data
            self._answer(200, b"")

    def do_DELETE(self) -> None:
        if not self._is_refused(b""):
            self.server.files.pop(self.path, None)
            self._answer(204, b"")

    def _give(self, *, has_body: bool) -> None:
        if self._is_refused(b""):
            return
        path, _, query = self.path.partition("?")
        if "list-type=2" in query and self.server.credentials is not None:
            self._answer(200, _page(self.server.files, path, dict(parse_qsl(query))))
            return
        data = self.server.files.get(self.path)
        if data is None:
            self._answer(404, b"")
        else:
            self._answer(200, data, has_body=has_body)

    def _is_refused(self, data: bytes) -> bool:
        self.server.requests.append((self.command, self.path))
        code = self.server.faults.pop(0) if self.server.faults else self._judge(data)
        if code:
            self._answer(code, b"")
        return bool(code)

    def _judge(self, data: bytes) -> int:
        if self.server.authorization:
            return 0 if self.headers.get("Authorization") == self.server.authorization else 401
        if self.server.credentials is None:
            return 0
        found = _SIGNED.search(self.headers.get("Authorization", ""))
        sha256 = hashlib.sha256(data).hexdigest()
        if not found or self.headers["x-amz-content-sha256"] != sha256:
            return 403
        url = f"http://{self.headers['Host']}{self.path}"
        request = Request(self.command, url, found[3], self.headers["x-amz-date"], sha256)
        signed = request.signed(self.server.credentials)["authorization"]
        return 0 if signed == self.headers["Authorization"] else 403

    def _answer(self, code: int, data: bytes, *, has_body: bool = True) -> None:
        self.send_response(code)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if has_body:
            self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def _page(files: Mapping[str, bytes], bucket: str, asked: Mapping[str, str]) -> bytes:
    """Return some names of a bucket, and where to go on; Amazon S3 API reference, ListObjectsV2."""
    keys = sorted(unquote(path).removeprefix(bucket) for path in files if path.startswith(bucket))
    after = [key for key in keys if key.startswith(asked["prefix"]) and key > asked.get("continuation-token", "")]
    page = after[:_PAGE]
    listed = "".join(f"<Contents><Key>{html.escape(key)}</Key></Contents>" for key in page)
    more = f"<NextContinuationToken>{html.escape(page[-1])}</NextContinuationToken>" if len(after) > _PAGE else ""
    return f"<ListBucketResult>{listed}{more}</ListBucketResult>".encode()


@contextmanager
def serving(server: FileServer) -> Iterator[FileServer]:
    """Yield a server that runs meanwhile."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
