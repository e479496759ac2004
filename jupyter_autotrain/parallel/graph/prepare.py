"""Brings a graph into the form in which it is searched, once, before everything else reads it."""

from __future__ import annotations

from typing import NewType

from jupyter_autotrain.parallel.graph.fold import fold
from jupyter_autotrain.parallel.graph.fuse import fuse
from jupyter_autotrain.parallel.graph.graph import OpGraph
from jupyter_autotrain.parallel.graph.hoist import hoisted

PreparedGraph = NewType("PreparedGraph", OpGraph)


def prepare(graph: OpGraph) -> PreparedGraph:
    """Followers fused, shared ops hoisted, repeated blocks found; a graph of an earlier plan is in this form already.

    Linear in the graph.
    """
    is_prepared = any(op.members for op in graph.ops)
    return PreparedGraph(graph if is_prepared else fold(hoisted(fuse(graph))))
