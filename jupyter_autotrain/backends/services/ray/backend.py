"""The backend `ray`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.services.backend import ServiceBackend
from jupyter_autotrain.backends.services.ray.service import RayService
from jupyter_autotrain.backends.services.service import Service

if TYPE_CHECKING:
    from pydantic import BaseModel


class RayBackend(ServiceBackend):
    """Runs each trial as a job of a Ray cluster."""

    @staticmethod
    def options_model() -> type[BaseModel]:
        """Address, interpreter, resources."""
        from jupyter_autotrain.backends.services.ray.options import RayOptions  # noqa: PLC0415 - pydantic is slow

        return RayOptions

    def connect(self, options: JsonObject) -> Service:
        """Return the cluster of a profile."""
        return RayService(options)
