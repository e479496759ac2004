"""JSON as the double handles it."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]  # an object that may be changed, unlike those of `agent.json`
