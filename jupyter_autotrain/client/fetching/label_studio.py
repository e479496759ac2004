"""Label Studio by its SDK: exports of projects, and samples that are to be labelled as tasks of the same project."""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
from label_studio_sdk import LabelStudio

from jupyter_autotrain.client.fetching.exports import unpack
from jupyter_autotrain.client.fetching.source import Told
from jupyter_autotrain.core.data import DataOrigin
from jupyter_autotrain.errors import AutotrainError

_INPUT: Final = re.compile(r"<(\w+)\b[^>]*\bvalue=[\"']\$(\w+)[\"']")
_TIMEOUT_S: Final = 600.0  # an export of a large project is made while it is waited for
_TEXTS: Final = frozenset(("Text", "HyperText", "Paragraphs"))


class _Length:
    """The length of the answer that comes, which the SDK does not tell; 0 where the server does not either."""

    size_bytes = 0

    def note(self, answer: httpx.Response) -> None:
        """Note the length of an answer, unless it is that of compressed bytes."""
        told = answer.headers.get("Content-Length", "0")
        self.size_bytes = 0 if "Content-Encoding" in answer.headers else int(told)


class LabelStudioServer:
    """A server of Label Studio.

    Args:
        client: The SDK's client.
        length: Of the answer that comes.
    """

    def __init__(self, client: LabelStudio, length: _Length) -> None:
        self._client = client
        self._length = length

    def _export(self, origin: DataOrigin, form: str) -> Iterator[bytes]:
        with_files = None if form == "JSON" else True
        exports: Any = self._client.projects.exports
        yield from exports.download_sync(_number(origin), export_type=form, download_resources=with_files)

    def revision(self, origin: DataOrigin) -> str:
        """Return the digest of all annotations: the server counts changes nowhere."""
        digest = hashlib.sha256()
        for part in self._export(origin, "JSON"):
            digest.update(part)
        return digest.hexdigest()[:12]

    def fetch(self, origin: DataOrigin, folder: Path, told: Told) -> Path:
        """Export all annotated tasks, with their files where the form has any."""
        archive = folder / "export.zip"
        size_bytes = 0
        with archive.open("wb") as file:
            for part in self._export(origin, origin.format.upper()):
                size_bytes += file.write(part)
                told(size_bytes, self._length.size_bytes)
        return unpack(archive, folder)

    def send(self, origin: DataOrigin, name: str, samples: Sequence[tuple[Path, float]]) -> str:
        """Add a task for each sample; what is no text travels in it as a data URI."""
        config = str(self._client.projects.get(_number(origin)).label_config)
        found = _INPUT.search(config)
        if found is None:
            text = f"{origin.address} shows no sample: its labelling interface names no $variable."
            raise AutotrainError(text, 'A tag such as <Image value="$image"/>.', "Correct the project, and send again.")
        tag, variable = found.groups()
        tasks: list[Any] = []
        for path, uncertainty in samples:
            content = path.read_text(encoding="utf-8") if tag in _TEXTS else _uri(path)
            tasks.append({"data": {variable: content, "file": path.name, "uncertainty": uncertainty, "batch": name}})
        self._client.projects.import_tasks(_number(origin), request=tasks)
        return f"tasks of {origin.address}"


def _number(origin: DataOrigin) -> int:
    return int(origin.address.partition("/")[2])


def _uri(path: Path) -> str:
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


@contextmanager
def connect(server: str, token: str) -> Iterator[LabelStudioServer]:
    """Connect to the server at an address."""
    make: Any = LabelStudio
    length = _Length()
    hooks = {"response": [length.note]}
    with httpx.Client(timeout=_TIMEOUT_S, follow_redirects=True, event_hooks=hooks) as client:
        yield LabelStudioServer(make(base_url=server, api_key=token, httpx_client=client), length)
