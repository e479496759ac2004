"""The backend `aml`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.services.aml.service import MOST_PILOTS, AmlService
from jupyter_autotrain.backends.services.backend import ServiceBackend
from jupyter_autotrain.backends.services.service import Service

if TYPE_CHECKING:
    from pydantic import BaseModel


class AmlBackend(ServiceBackend):
    """Runs each trial as a command job of an Azure Machine Learning workspace."""

    reuse = MOST_PILOTS

    @staticmethod
    def options_model() -> type[BaseModel]:
        """Workspace, compute, image."""
        from jupyter_autotrain.backends.services.aml.options import AmlOptions  # noqa: PLC0415 - pydantic is slow

        return AmlOptions

    def connect(self, options: JsonObject) -> Service:
        """Return the workspace of a profile."""
        return AmlService(options)
