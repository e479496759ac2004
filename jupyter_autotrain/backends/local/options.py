"""Options of the built-in backends, as their section of a header sets them; and of all whose trials begin warm."""

from __future__ import annotations

from pydantic import Field

from jupyter_autotrain.agent.objects.data_cache import DEFAULT_LIMIT_BYTES
from jupyter_autotrain.agent.service import warm_starts
from jupyter_autotrain.core.inventory import AcceleratorPolicy
from jupyter_autotrain.header.sections.section import Section
from jupyter_autotrain.header.types import Count, Duration, Indices, Size, Truth


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


_POLICY = AcceleratorPolicy()


class LocalOptions(ReuseOptions):
    """Options of the local backend."""

    max_trials_per_gpu: Count = Field(
        default=_POLICY.max_trials_per_gpu, description="How many trials may share one GPU.", examples=["2"]
    )
    use_active_gpu: Truth = Field(
        default=_POLICY.use_active_gpu, description="Use GPUs that other programs are using.", examples=["true"]
    )
    gpu_indices: Indices | None = Field(
        default=_POLICY.gpu_indices, description="The GPUs that may be used.", examples=["[0, 1]"]
    )
    data_cache_limit: Size = Field(
        default=DEFAULT_LIMIT_BYTES,
        description="How much data that trials fetched by URL is kept; the least recently used goes first.",
        examples=["500GB"],
    )


class DebugOptions(Section):
    """The debug backend has no options."""
