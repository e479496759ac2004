"""Views of experiments and plans in a notebook: the run card, or a widget that receives updates from the kernel."""

from __future__ import annotations

from jupyter_autotrain.widgets.show import show, show_collapsed, show_experiment

__all__ = ["show", "show_collapsed", "show_experiment"]
