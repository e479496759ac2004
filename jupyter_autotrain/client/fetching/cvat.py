"""CVAT by its SDK: exports of tasks and projects, and new tasks of samples that are to be labelled."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from cvat_sdk import Client, Config
from cvat_sdk.api_client import models
from cvat_sdk.core.client import AccessTokenCredentials
from cvat_sdk.core.progress import ProgressReporter
from cvat_sdk.core.proxies.types import Location

from jupyter_autotrain.client.fetching.exports import unpack
from jupyter_autotrain.client.fetching.source import Told
from jupyter_autotrain.core.data import DataOrigin

_FORMATS: Final = {"coco": "COCO 1.0", "yolo": "YOLO 1.1", "voc": "PASCAL VOC 1.1"}
_POLL_S: Final = 0.5


class _Export(ProgressReporter):  # type: ignore[misc]  # the SDK may be absent
    """Tells that an export is prepared, and then how much of it has come."""

    def __init__(self, told: Told) -> None:
        self._told = told
        self._total_bytes = self._size_bytes = 0

    def start2(self, total: int | None, **_: object) -> None:
        """Begin; the server may not say how much it is."""
        self._total_bytes = total or 0

    def report_status(self, progress: int) -> None:
        """Tell how much there is by now."""
        self._size_bytes = progress
        self._told(self._size_bytes, self._total_bytes)

    def advance(self, delta: int) -> None:
        """Tell that so much more has come."""
        self.report_status(self._size_bytes + delta)


class _StatusHandler(logging.Handler):
    """Tells of an export each time that the SDK has asked for its state, which it notes in its log alone."""

    def __init__(self, export: _Export) -> None:
        super().__init__(logging.INFO)
        self._export = export

    def emit(self, record: logging.LogRecord) -> None:  # noqa: ARG002 - that there is one says enough
        """Tell that nothing more has come."""
        self._export.advance(0)


class CvatServer:
    """A server of CVAT.

    Args:
        client: The SDK's client, logged in.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def _find(self, origin: DataOrigin) -> Any:  # noqa: ANN401 - a task or project of the SDK, which may be absent
        kind, _, number = origin.address.partition("/")
        return (self._client.tasks if kind == "task" else self._client.projects).retrieve(int(number))

    def revision(self, origin: DataOrigin) -> str:
        """Return a digest of when it was changed, which CVAT notes with each change of a label."""
        found = self._find(origin)
        return hashlib.sha256(found.updated_date.isoformat().encode()).hexdigest()[:12]

    def fetch(self, origin: DataOrigin, folder: Path, told: Told) -> Path:
        """Export it with its images."""
        archive = folder / "export.zip"
        name = _FORMATS.get(origin.format.lower(), origin.format)
        found = self._find(origin)
        export = _Export(told)
        handler = _StatusHandler(export)
        self._client.logger.addHandler(handler)
        try:
            found.export_dataset(
                name, archive, include_images=True, location=Location.LOCAL, status_check_period=_POLL_S,
                pbar=export,
            )  # fmt: skip
        finally:
            self._client.logger.removeHandler(handler)
        return unpack(archive, folder)

    def send(self, origin: DataOrigin, name: str, samples: Sequence[tuple[Path, float]]) -> str:
        """Make a task of the samples, the least sure first, with the labels of `origin`."""
        found = self._find(origin)
        spec: dict[str, object] = {"name": name}
        if project := found.id if origin.address.startswith("project/") else found.project_id:
            spec["project_id"] = project
        else:
            spec["labels"] = list(map(_label, found.get_labels()))
        made = self._client.tasks.create_from_data(
            models.TaskWriteRequest(**spec), [path for path, _ in samples],
            data_params={"sorting_method": "predefined", "image_quality": 100}, status_check_period=_POLL_S,
        )  # fmt: skip
        return f"task/{made.id}"


def _label(found: Any) -> models.PatchedLabelRequest:  # noqa: ANN401 - a label of the SDK, which may be absent
    attributes = [
        models.AttributeRequest(
            name=one.name, mutable=one.mutable, input_type=one.input_type,
            default_value=one.default_value, values=one.values,
        )
        for one in found.attributes
    ]  # fmt: skip
    return models.PatchedLabelRequest(name=found.name, color=found.color, type=found.type, attributes=attributes)


@contextmanager
def connect(server: str, token: str) -> Iterator[CvatServer]:
    """Connect to the server at an address."""
    logger = logging.Logger("cvat", logging.INFO)  # noqa: LOG001 - of this connection alone
    with Client(server, logger=logger, config=Config(status_check_period=_POLL_S)) as client:
        client.login(AccessTokenCredentials(token))
        yield CvatServer(client)
