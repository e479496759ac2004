"""Long lists, a part at a time."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence

from tests.labs.kubernetes.objects.errors import ApiError, bad_request
from tests.labs.kubernetes.objects.values import Json


def page(items: Sequence[Json], version: str, oldest: int, limit: int, token: str) -> tuple[Sequence[Json], Json]:
    """Return the part of a list that a request asks for, and the metadata of the answer.

    Raises:
        ApiError: 400 or 410: There is no such part (any more).
    """
    begin = {"version": version, "after": ""}
    if token:
        try:
            begin = json.loads(base64.urlsafe_b64decode(token))
        except ValueError:
            raise bad_request("continue key is not valid") from None
        if int(begin["version"]) < oldest:
            message = "The provided continue parameter is too old to display a consistent list result."
            raise ApiError(410, "Expired", message)
    left = [item for item in items if _key(item) > begin["after"]]
    shown = left[:limit] if limit else left
    metadata: Json = {"resourceVersion": begin["version"]}
    if len(shown) < len(left):
        after = json.dumps({"version": begin["version"], "after": _key(shown[-1])})
        metadata["continue"] = base64.urlsafe_b64encode(after.encode()).decode()
        metadata["remainingItemCount"] = len(left) - len(shown)
    return shown, metadata


def _key(found: Json) -> str:
    return f"{found['metadata'].get('namespace', '')}/{found['metadata']['name']}"
