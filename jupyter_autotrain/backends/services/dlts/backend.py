"""The backend `dlts`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.services.backend import ServiceBackend
from jupyter_autotrain.backends.services.dlts.service import DltsService
from jupyter_autotrain.backends.services.service import Service

if TYPE_CHECKING:
    from pydantic import BaseModel


class DltsBackend(ServiceBackend):
    """Runs each trial as a job of DLTS."""

    @staticmethod
    def options_model() -> type[BaseModel]:
        """Address, team, image, storage."""
        from jupyter_autotrain.backends.services.dlts.options import DltsOptions  # noqa: PLC0415 - pydantic is slow

        return DltsOptions

    def connect(self, options: JsonObject) -> Service:
        """Return the cluster of a profile."""
        return DltsService(options)
