"""The backend `openpai`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.services.backend import ServiceBackend
from jupyter_autotrain.backends.services.openpai.service import OpenpaiService
from jupyter_autotrain.backends.services.service import Service

if TYPE_CHECKING:
    from pydantic import BaseModel


class OpenpaiBackend(ServiceBackend):
    """Runs each trial as a job of OpenPAI."""

    @staticmethod
    def options_model() -> type[BaseModel]:
        """Address, user, image, storage."""
        from jupyter_autotrain.backends.services.openpai.options import OpenpaiOptions  # noqa: PLC0415 - pydantic is slow

        return OpenpaiOptions

    def connect(self, options: JsonObject) -> Service:
        """Return the cluster of a profile."""
        return OpenpaiService(options)
