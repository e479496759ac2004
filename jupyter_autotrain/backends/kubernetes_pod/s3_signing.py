"""Signing of requests to S3 and what speaks its protocol: AWS Signature Version 4, of which one request needs little.

Source: "Signature Version 4 signing process", AWS General Reference; checked against its published example.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from urllib.parse import quote, urlsplit

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
_ALGORITHM = "AWS4-HMAC-SHA256"


class Credentials:
    """Who signs.

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
        """Those of the usual variables; None where they are not set, as for a bucket that all may read."""
        key_id = variables.get("AWS_ACCESS_KEY_ID", "")
        secret = variables.get("AWS_SECRET_ACCESS_KEY", "")
        return cls(key_id, secret, variables.get("AWS_SESSION_TOKEN", "")) if key_id and secret else None


def object_url(endpoint: str, bucket: str, key: str, region: str) -> str:
    """The address of an object, with the bucket in its path, as all servers take it.

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
        """Its headers, with the signature.

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
