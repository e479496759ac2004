"""From an `nn.Module` and example inputs to an `OpGraph`, forward and backward, without using memory."""

from jupyter_autotrain.parallel.trace.tracing import trace

__all__ = ["trace"]
