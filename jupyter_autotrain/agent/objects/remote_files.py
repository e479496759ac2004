"""Files on a server: objects of a bucket (S3), or below a folder of a web server (GET, HEAD and PUT).

Requests to S3, and to services that speak its protocol, are signed by AWS Signature Version 4, as far as needed. The
manager's side uses this too. Standard library of Python 3.9 alone.
"""

from __future__ import annotations

import hashlib
import hmac
import html
import os
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from urllib.parse import quote, urlsplit

from jupyter_autotrain.agent.errors import DataError
from jupyter_autotrain.agent.objects import download

TYPE_CHECKING = False
if TYPE_CHECKING:
    from http.client import HTTPResponse

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
_ALGORITHM = "AWS4-HMAC-SHA256"
DEFAULT_REGION = "us-east-1"
_NOT_FOUND = 404
_NEXT = "NextContinuationToken"


class Credentials:
    """The keys that requests are signed with.

    Args:
        key_id: The access key's id.
        secret: The access key's secret.
        token: Of temporary credentials, or "".
    """

    def __init__(self, key_id: str, secret: str, token: str = "") -> None:
        self.key_id = key_id
        self.secret = secret
        self.token = token

    @classmethod
    def from_variables(cls, variables: Mapping[str, str]) -> Credentials | None:
        """Return the credentials of the usual variables.

        They are None where these are not set, as for a bucket that all may read.
        """
        key_id = variables.get("AWS_ACCESS_KEY_ID", "")
        secret = variables.get("AWS_SECRET_ACCESS_KEY", "")
        return cls(key_id, secret, variables.get("AWS_SESSION_TOKEN", "")) if key_id and secret else None


def object_url(endpoint: str, bucket: str, key: str, region: str) -> str:
    """Return the address of an object, with the bucket in its path, as all servers take it.

    Args:
        endpoint: Of the server; "": Amazon's.
        bucket: The bucket.
        key: The object's name in it.
        region: The bucket's region.
    """
    root = endpoint.rstrip("/") or f"https://s3.{region}.amazonaws.com"
    return f"{root}/{quote(bucket)}/{quote(key, safe='/-_.~')}"


class Request:
    """A request that is to be signed.

    Args:
        method: GET, HEAD, PUT or DELETE.
        url: Of the object; a query is in the order of its names, and quoted.
        region: The bucket's region.
        time_utc: Now, such as 20130524T000000Z.
        payload_sha256: The digest of what is sent.
    """

    def __init__(self, method: str, url: str, region: str, time_utc: str, payload_sha256: str = EMPTY_SHA256) -> None:
        self._method = method
        self._url = urlsplit(url)
        self._time_utc = time_utc
        self._payload_sha256 = payload_sha256
        self._day_and_region = (time_utc[:8], region)

    def signed(self, credentials: Credentials, headers: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the headers of the request, with the signature.

        Args:
            credentials: Who signs.
            headers: Further headers, which are signed too; their names in lower case.
        """
        own = {"x-amz-content-sha256": self._payload_sha256, "x-amz-date": self._time_utc, **(headers or {})}
        if credentials.token:
            own["x-amz-security-token"] = credentials.token
        named = {**own, "host": self._url.netloc}
        lines = "".join(f"{name}:{named[name].strip()}\n" for name in sorted(named))
        signed = ";".join(sorted(named))
        parts = (self._method, self._url.path, self._url.query, lines, signed, self._payload_sha256)
        scope = "/".join((*self._day_and_region, "s3", "aws4_request"))
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
        text = "\n".join((_ALGORITHM, self._time_utc, scope, digest))
        signature = hmac.new(self._key(credentials.secret), text.encode(), hashlib.sha256).hexdigest()
        shown = f"Credential={credentials.key_id}/{scope},SignedHeaders={signed},Signature={signature}"
        return {**own, "authorization": f"{_ALGORITHM} {shown}"}

    def _key(self, secret: str) -> bytes:
        key = f"AWS4{secret}".encode()
        for part in (*self._day_and_region, "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return key


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
        """Return the address of a file."""
        if not self._s3:
            return f"{self._url.rstrip('/')}/{quote(name)}"
        return self._url_of_key(self._key(name))

    def _key(self, name: str) -> str:
        return "/".join(filter(None, (self._s3.get("prefix", "").strip("/"), name)))

    def _url_of_key(self, key: str) -> str:
        return object_url(self._s3.get("endpoint", ""), self._s3["bucket"], key, self._region)

    @property
    def _region(self) -> str:
        return self._s3.get("region") or DEFAULT_REGION

    def has(self, name: str, size_bytes: int) -> bool:
        """Tell whether a file of this size is there.

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
        except download.FAULTS as error:
            raise self._failed("asked for", name, error) from error

    def put(self, name: str, blocks: Callable[[], Iterable[bytes]], size_bytes: int, sha256: str) -> None:
        """Send a file; a server of S3 refuses content with another digest.

        Args:
            name: The file.
            blocks: Gives the content from its beginning, each time that it is called.
            size_bytes: Of the content.
            sha256: Of the content.

        Raises:
            DataError: The server does not take it.
        """
        try:
            download.again(lambda: self._ask("PUT", name, iter(blocks()), size_bytes, sha256).close())
        except download.FAULTS as error:
            raise self._failed("sent", name, error) from error

    def names(self, prefix: str) -> list[str]:
        """Return the names of a bucket's files that begin with `prefix`, by ListObjectsV2, a page after another.

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
            except download.FAULTS as error:
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
        except download.FAULTS as error:
            if not (isinstance(error, urllib.error.HTTPError) and error.code == _NOT_FOUND):
                raise self._failed("removed", name, error) from error

    def get(self, name: str, sha256: str, target: str) -> None:
        """Bring a file here; it is at `target` only when it is whole and has this digest.

        Raises:
            DataError: It is not there, or has another digest.
        """
        part = f"{target}.part-{os.getpid()}"
        try:
            found = download.complete(part, lambda headers: self._send("GET", self.url(name), headers=headers))
        except download.FAULTS as error:
            raise self._failed("fetched", name, error) from error
        if found != sha256:
            os.unlink(part)
            raise DataError(
                f"{self.url(name)} has the SHA-256 {found}.",
                f"{sha256} was sent there.",
                "Remove that file, and submit the cell again: it is sent anew.",
            )
        os.replace(part, target)

    def _ask(
        self, method: str, name: str, data: Iterator[bytes] | None = None, size_bytes: int = 0, sha256: str = ""
    ) -> HTTPResponse:
        return self._send(method, self.url(name), data, size_bytes, sha256)

    def _send(
        self, method: str, url: str, data: Iterator[bytes] | None = None, size_bytes: int = 0, sha256: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> HTTPResponse:  # fmt: skip
        headers = {**(headers or {}), **self._headers(method, url, sha256 or EMPTY_SHA256)}
        if data is not None:
            headers["content-length"] = str(size_bytes)
            headers["content-type"] = "application/octet-stream"
        request = urllib.request.Request(url, data=data, headers=headers, method=method)  # noqa: S310 - the profile's options allow https and http
        try:
            answer: HTTPResponse = urllib.request.urlopen(request, timeout=download.SILENCE_S)  # noqa: S310 - as above
        except urllib.error.HTTPError as error:
            error.close()  # its code is all that is used
            raise
        return answer

    def _headers(self, method: str, url: str, sha256: str) -> dict[str, str]:
        if not self._s3:
            value = self._variables.get("AUTHORIZATION", "")
            return {"authorization": value} if value else {}
        credentials = Credentials.from_variables(self._variables)
        if credentials is None:
            return {}
        now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        return Request(method, url, self._region, now, sha256).signed(credentials)

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
