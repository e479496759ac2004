"""A folder in a blob container of the workspace, as the storage of a shared folder.

A blob is there wholly or not at all, and folders are only prefixes: a mark tells one that is complete.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import html
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from jupyter_autotrain.backends.services import http_client
from jupyter_autotrain.backends.services.http_client import HttpService, Request
from jupyter_autotrain.backends.services.package import new_name
from jupyter_autotrain.core.backend_check import CheckStep, StepTimer
from jupyter_autotrain.errors import AutotrainError

API: Final = {"x-ms-version": "2021-08-06"}
_SAS_VERSION = "2019-12-12"
_SAS_S = 3600.0
_OPEN_S = 3000.0
_COMPLETE = ".complete"


@dataclass(frozen=True, slots=True)
class Container:
    """A folder in a container, opened.

    Attributes:
        http: Of the storage account.
        folder: The container, and the path in it.
    """

    http: HttpService
    folder: str

    def call(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """Return what a request about one blob is answered with."""
        headers = API if body is None else {**API, "x-ms-blob-type": "BlockBlob"}
        target = f"/{self.folder}/{quote(path)}"
        return self.http.call(Request(method, target, None, body, "application/octet-stream", headers))

    def sizes(self, path: str) -> Iterator[tuple[str, int]]:
        """Yield the blobs below a folder, by their paths in it, with their bytes."""
        container, _, root = self.folder.partition("/")
        marker = ""
        while True:
            query = {"restype": "container", "comp": "list", "prefix": f"{root}/{path}/"}
            query |= {"marker": marker} if marker else {}
            text = self.http.call(Request("GET", f"/{container}", query, headers=API)).decode()
            for blob in re.findall("<Blob>.*?</Blob>", text, re.DOTALL):
                name, size = (re.search(f"<{tag}>([^<]*)<", blob) for tag in ("Name", "Content-Length"))
                if name and size:
                    yield html.unescape(name[1])[len(f"{root}/{path}/") :], int(size[1])
            found = re.search("<NextMarker>([^<]+)</NextMarker>", text)
            if found is None:
                return
            marker = html.unescape(found[1])


class BlobStorage:
    """A folder in a container.

    Args:
        connect: Opens it, for an hour.
    """

    look_again_s = 1.0

    def __init__(self, connect: Callable[[], Container]) -> None:
        self._connect = connect
        self._lock = threading.Lock()
        self._opened: tuple[float, Container] | None = None

    def _container(self) -> Container:
        with self._lock:
            if self._opened is None or self._opened[0] < time.monotonic():
                self._opened = (time.monotonic() + _OPEN_S, self._connect())
            return self._opened[1]

    def check(self, timer: StepTimer) -> CheckStep:
        """Return the step that writes, reads and removes a blob."""
        timer.begin("storage")
        path = new_name("check")
        try:
            self.write(path, b"jupyter-autotrain")
            is_same = self.take(path) == b"jupyter-autotrain"
            where = f"{self._container().http.address}/{self._container().folder}"
        except AutotrainError as error:
            return timer.refused(error)
        if not is_same:
            return timer.failed(f"{where} gives something else back than was written", "Look at `datastore:`.")
        return timer.done(f"{where} can be written and read")

    def has(self, path: str) -> bool:
        """Return whether there is a blob, or a complete folder."""
        return self.read(path) is not None or self.read(f"{path}/{_COMPLETE}") is not None

    def read(self, path: str) -> bytes | None:
        """Return a blob."""
        content = None
        with http_client.unless_gone():
            content = self._container().call("GET", path)
        return content  # noqa: RET504 - None where there is none

    def write(self, path: str, content: bytes) -> None:
        """Write a blob."""
        self._container().call("PUT", path, content)

    def write_folder(self, path: str, content: Mapping[str, bytes]) -> None:
        """Write blobs, and last what says that they are complete."""
        for name, data in content.items():
            self.write(f"{path}/{name}", data)
        self.write(f"{path}/{_COMPLETE}", b"")

    def make_folder(self, path: str) -> None:
        """Write an empty blob, by which a mount has the folder."""
        self.write(f"{path}/.folder", b"")

    def take(self, path: str) -> bytes | None:
        """Return a blob and remove it."""
        content = self.read(path)
        if content is not None:
            self.remove(path)
        return content

    def remove(self, path: str) -> bool:
        """Remove a blob."""
        is_there = False
        with http_client.unless_gone():
            self._container().call("DELETE", path)
            is_there = True
        return is_there  # noqa: RET504 - False where there was none

    def names(self, path: str) -> list[str]:
        """Return what is below a folder."""
        found = {name.partition("/")[0] for name in self.sizes(path)}
        return sorted(name for name in found if not name.startswith("."))

    def sizes(self, path: str) -> Mapping[str, int]:
        """Return the bytes of the blobs below a folder."""
        return dict(self._container().sizes(path))

    def remove_folder(self, path: str) -> None:
        """Remove all blobs of a folder."""
        for name in self.sizes(path):
            self.remove(f"{path}/{name}")


def signature(account: str, key: str) -> Mapping[str, str]:
    """Return the query of a shared access signature for an account's blobs, for an hour.

    Args:
        account: Its name.
        key: In base64.
    """
    expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + _SAS_S))
    query = {"sp": "rwdl", "ss": "b", "srt": "co", "se": expires, "spr": "https", "sv": _SAS_VERSION}
    text = "\n".join([account, "rwdl", "b", "co", "", expires, "", "https", _SAS_VERSION, ""])
    digest = hmac.new(base64.b64decode(key), text.encode(), hashlib.sha256).digest()
    return {**query, "sig": base64.b64encode(digest).decode()}
