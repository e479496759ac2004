"""The calls of Ray Train inside a trial."""

from __future__ import annotations

from jupyter_autotrain.agent.ranks.stand_ins.ray.tune import report

__all__ = ["report"]
