"""The backend `dlc`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.services.backend import ServiceBackend
from jupyter_autotrain.backends.services.dlc.service import DlcService
from jupyter_autotrain.backends.services.service import Service

if TYPE_CHECKING:
    from pydantic import BaseModel


class DlcBackend(ServiceBackend):
    """Runs each trial as a job of PAI-DLC."""

    @staticmethod
    def options_model() -> type[BaseModel]:
        """Region, workspace, image, machine, storage."""
        from jupyter_autotrain.backends.services.dlc.options import DlcOptions  # noqa: PLC0415 - pydantic is slow

        return DlcOptions

    def connect(self, options: JsonObject) -> Service:
        """Return the workspace of a profile."""
        return DlcService(options)
