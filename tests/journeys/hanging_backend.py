"""A backend that another package brings, and of which chosen methods never return."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from copying_backend import CopyingBackend, CopyingOptions
from pydantic import Field


class HangingOptions(CopyingOptions):
    """Options of the hanging backend."""

    hangs: str = Field(default="", description="The method that never returns.")


class HangingBackend(CopyingBackend):
    """Copies files as `CopyingBackend` does, where it returns at all."""

    def __init__(self, profile: Any, context: Any) -> None:
        self._hanging = profile.options.get("hangs", "")
        if self._hanging == "__init__":
            threading.Event().wait()
        super().__init__(profile, context)

    @staticmethod
    def options_model() -> type[HangingOptions]:
        return HangingOptions

    def check_trial(self, trial: object) -> Sequence[str]:
        return ()

    def inspect_python(self, environment: object, distributions: object) -> list[Any]:
        return []

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_") and name == self._hanging:
            return lambda *arguments, **options: threading.Event().wait()
        return super().__getattribute__(name)
