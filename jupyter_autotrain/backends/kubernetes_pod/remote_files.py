"""Files on a server: objects of a bucket (S3), or below a folder of a web server (GET, HEAD and PUT).

The manager's side uses this too. Standard library of Python 3.9 alone.
"""

from __future__ import annotations

import hashlib
import html
import http.client
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.parse import quote

from jupyter_autotrain.backends.kubernetes_pod import s3_signing
from jupyter_autotrain.errors import DataError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from http.client import HTTPResponse

BLOCK_BYTES = 1 << 20
DEFAULT_REGION = "us-east-1"
_SILENCE_S = 60.0
_TRIES = 4
_PAUSE_S = 0.5
_NOT_FOUND = 404
_NEXT = "NextContinuationToken"
_MAY_PASS = frozenset({408, 429, 500, 502, 503, 504})


class RemoteFiles:
    """The files below one place of a server.

    Args:
        place: {"s3": {"bucket", "prefix", "endpoint", "region"}} or {"http": {"url"}}, as the profile says.
        variables: Where the credentials are: AWS_ACCESS_KEY_ID ..., or AUTHORIZATION for a web server.
    """

    def __init__(self, place: Mapping[str, object], variables: Mapping[str, str]) -> None:
        s3 = place.get("s3")
        web = place.get("http")
        self._s3 = {name: str(value) for name, value in s3.items() if value} if isinstance(s3, Mapping) else {}
        self._url = str(web.get("url") or "") if isinstance(web, Mapping) else str(web or "")
        self._variables = variables

    def url(self, name: str) -> str:
        """The address of a file."""
        if not self._s3:
            return f"{self._url.rstrip('/')}/{quote(name)}"
        return self._url_of_key(self._key(name))

    def _key(self, name: str) -> str:
        return "/".join(part for part in (self._s3.get("prefix", "").strip("/"), name) if part)

    def _url_of_key(self, key: str) -> str:
        return s3_signing.object_url(self._s3.get("endpoint", ""), self._s3["bucket"], key, self._region)

    @property
    def _region(self) -> str:
        return self._s3.get("region") or DEFAULT_REGION

    def has(self, name: str, size_bytes: int) -> bool:
        """Whether a file of this size is there.

        Raises:
            DataError: The server does not say.
        """
        try:
            with self._ask("HEAD", name) as answer:
                return answer.headers.get("Content-Length") in {None, str(size_bytes)}
        except urllib.error.HTTPError as error:
            if error.code == _NOT_FOUND:
                return False
            raise self._failed("asked for", name, error) from error
        except (OSError, http.client.HTTPException) as error:
            raise self._failed("asked for", name, error) from error

    def put(self, name: str, blocks: Callable[[], Iterable[bytes]], size_bytes: int, sha256: str) -> None:
        """Send a file; a server of S3 refuses what has another digest.

        Args:
            name: The file.
            blocks: Gives the content from its beginning, each time that it is called.
            size_bytes: Of the content.
            sha256: Of the content.

        Raises:
            DataError: The server does not take it.
        """
        try:
            self._again(lambda: self._ask("PUT", name, iter(blocks()), size_bytes, sha256).close())
        except (OSError, http.client.HTTPException) as error:
            raise self._failed("sent", name, error) from error

    def names(self, prefix: str) -> list[str]:
        """The names of the files of a bucket that begin so; ListObjectsV2, a page after another.

        Raises:
            DataError: The server does not say.
        """
        root = f"{self._key('')}/" if self._key("") else ""
        found: list[str] = []
        token = ""
        while True:
            more = {"continuation-token": token} if token else {}
            asked = {**more, "list-type": "2", "prefix": f"{root}{prefix}"}  # in their order, as is signed
            query = "&".join(f"{name}={quote(value, safe='-_.~')}" for name, value in asked.items())
            try:
                with self._send("GET", f"{self._url_of_key('')}?{query}") as answer:
                    text = answer.read().decode()
            except (OSError, http.client.HTTPException) as error:
                raise self._failed("listed", prefix, error) from error
            found += [html.unescape(key)[len(root) :] for key in _texts(text, "Key")]
            token = html.unescape("".join(_texts(text, _NEXT)))
            if not token:
                return found

    def delete(self, name: str) -> None:
        """Remove a file; one that is not there is removed already.

        Raises:
            DataError: The server does not remove it.
        """
        try:
            self._ask("DELETE", name).close()
        except (OSError, http.client.HTTPException) as error:
            if not (isinstance(error, urllib.error.HTTPError) and error.code == _NOT_FOUND):
                raise self._failed("removed", name, error) from error

    def get(self, name: str, sha256: str, target: str) -> None:
        """Bring a file here; it is at `target` only when it is whole and has this digest.

        Raises:
            DataError: It is not there, or has another digest.
        """
        part = f"{target}.part-{os.getpid()}"
        try:
            found = self._again(lambda: self._download(name, part))
        except (OSError, http.client.HTTPException) as error:
            raise self._failed("fetched", name, error) from error
        if found != sha256:
            os.unlink(part)
            raise DataError(
                f"{self.url(name)} has the SHA-256 {found}.",
                f"{sha256} was sent there.",
                "Remove that file, and submit the cell again: it is sent anew.",
            )
        os.replace(part, target)

    def _download(self, name: str, part: str) -> str:
        total = hashlib.sha256()
        with self._ask("GET", name) as answer, open(part, "wb") as file:
            while block := answer.read(BLOCK_BYTES):
                file.write(block)
                total.update(block)
            length = answer.headers.get("Content-Length")
            if length and file.tell() != int(length):
                raise ConnectionError(f"{file.tell()} of {length} bytes came")
        return total.hexdigest()

    def _ask(
        self, method: str, name: str, data: Iterator[bytes] | None = None, size_bytes: int = 0, sha256: str = ""
    ) -> HTTPResponse:
        return self._send(method, self.url(name), data, size_bytes, sha256)

    def _send(
        self, method: str, url: str, data: Iterator[bytes] | None = None, size_bytes: int = 0, sha256: str = ""
    ) -> HTTPResponse:
        headers = self._headers(method, url, sha256 or s3_signing.EMPTY_SHA256)
        if data is not None:
            headers["content-length"] = str(size_bytes)
            headers["content-type"] = "application/octet-stream"
        request = urllib.request.Request(url, data=data, headers=headers, method=method)  # noqa: S310 - the profile's options allow https and http
        try:
            answer: HTTPResponse = urllib.request.urlopen(request, timeout=_SILENCE_S)  # noqa: S310 - as above
        except urllib.error.HTTPError as error:
            error.close()  # its code is all that is used
            raise
        return answer

    def _headers(self, method: str, url: str, sha256: str) -> dict[str, str]:
        if not self._s3:
            value = self._variables.get("AUTHORIZATION", "")
            return {"authorization": value} if value else {}
        credentials = s3_signing.Credentials.from_variables(self._variables)
        if credentials is None:
            return {}
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        return s3_signing.Request(method, url, self._region, now, sha256).signed(credentials)

    @staticmethod
    def _again(ask: Callable[[], str | None]) -> str | None:
        """Ask, again after a fault that may pass; the last fault is the caller's."""
        for attempt in range(_TRIES - 1):
            try:
                return ask()
            except (OSError, http.client.HTTPException) as error:
                if isinstance(error, urllib.error.HTTPError) and error.code not in _MAY_PASS:
                    raise
            time.sleep(_PAUSE_S * 2**attempt)
        return ask()

    def _failed(self, what: str, name: str, error: Exception) -> DataError:
        why = getattr(error, "reason", None) or error
        code = f"{error.code} " if isinstance(error, urllib.error.HTTPError) else ""
        return DataError(
            f"{self.url(name)} cannot be {what}: {code}{why}.",
            "The server of the profile's `storage:` answers, and the keys of its `secret:` may read and write there.",
            "Correct `storage:`, or the Secret, then retry.",
        )


def _texts(xml: str, tag: str) -> list[str]:
    return re.findall(f"<{tag}>(.*?)</{tag}>", xml)
