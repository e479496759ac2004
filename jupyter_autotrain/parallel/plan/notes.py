"""What a reader must know to use a plan, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from jupyter_autotrain.parallel.graph.graph import OpGraph


def notes_of(graph: OpGraph) -> tuple[str, ...]:
    """Sentences about a plan, most important first; none where there is nothing to say."""
    return (*_traced(graph), *_batch(graph))


def _traced(graph: OpGraph) -> Iterator[str]:
    """What of the model was left out of the trace."""
    if graph.meta.get("note"):
        yield graph.meta["note"]


def _batch(graph: OpGraph) -> Iterator[str]:
    if graph.uncut:
        yield f"The batch is not cut into microbatches, which could change the mathematics: {graph.uncut}."
        yield (
            "Split along the batch, devices must exchange what samples compare: DTensor does; plain DDP does not, and "
            "BatchNorm does as SyncBatchNorm only."
        )
