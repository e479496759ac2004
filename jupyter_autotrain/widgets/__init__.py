"""Views of experiments in a notebook, fed from the store: `show` → `live` ← `sender` ← `feed`; and the run card."""

from __future__ import annotations

from jupyter_autotrain.widgets.card import Card, card
from jupyter_autotrain.widgets.show import show, show_experiment, show_folded

__all__ = ["Card", "card", "show", "show_experiment", "show_folded"]
