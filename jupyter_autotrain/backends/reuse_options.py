"""Options of the backends whose trials begin in processes forked from warm ones (`agent.service.warm_starts`)."""

from __future__ import annotations

from pydantic import Field

from jupyter_autotrain.agent.service import warm_starts
from jupyter_autotrain.header.sections import Section
from jupyter_autotrain.header.types import Duration, Size, Truth


class ReuseOptions(Section):
    """The start of trials: from a warm process, or cold."""

    reuse: Truth = Field(
        default=True,
        description="Begin trials from processes that run on and have made the cell's imports: sooner, and each still "
        "in a process of its own.",
        examples=["false"],
    )
    reuse_idle: Duration = Field(
        default=warm_starts.IDLE_S,
        description="How long such a process waits for another trial before it ends.",
        examples=["5m"],
    )
    reuse_memory: Size = Field(
        default=warm_starts.LIMIT_BYTES,
        description="How much memory all such processes of a machine may hold; the least recently used ends first.",
        examples=["4GB"],
    )
