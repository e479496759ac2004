"""The run card: an experiment on one page, as text and as HTML, that reads with no kernel, network or script.

It is what a notebook file keeps of an experiment, so it is bounded whatever the trials print and however many there
are, and it holds no secret and no path of this machine.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from typing import Final

from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.agent.terminal import printable
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.core.clock import BootTime
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.notes import summarize_warnings
from jupyter_autotrain.core.objective import ranked
from jupyter_autotrain.core.records import ExperimentRecord
from jupyter_autotrain.store import Store
from jupyter_autotrain.views import trial_pictures
from jupyter_autotrain.views.card_content import CardContent
from jupyter_autotrain.views.card_html import IMAGES, html
from jupyter_autotrain.views.json_objects import LIMIT_BYTES as RUN_LIMIT_BYTES
from jupyter_autotrain.views.json_objects import MIME_TYPE, run_json
from jupyter_autotrain.views.series import objective_first

LIMIT_BYTES: Final = 49_000  # a cell may store 50 kB, what surrounds the card included
_PANELS: Final = 3
_WARNINGS: Final = 3


@dataclass(frozen=True, slots=True)
class Card:
    """The forms of one run card; `run` is what front ends draw that know its type (`run_json`)."""

    text: str
    html: str
    run: JsonObject = field(default_factory=dict)

    @property
    def size_bytes(self) -> int:
        """The bytes of all forms."""
        run_bytes = len(json.dumps(self.run).encode()) if self.run else 0
        return len(self.text.encode()) + len(self.html.encode()) + run_bytes

    def mime_bundle(self) -> dict[str, JsonValue]:
        """Return the forms by MIME type."""
        bundle: dict[str, JsonValue] = {"text/plain": self.text, "text/html": self.html}
        if self.run:
            bundle[MIME_TYPE] = self.run
        return bundle


def card(store: Store, record: ExperimentRecord, now_s: float | None = None, home: Home | None = None) -> Card:
    """Draw the run card of an experiment as it is now; at most `LIMIT_BYTES`, all forms together.

    Args:
        store: The store the experiment lies in.
        record: The experiment.
        now_s: The time to count a running experiment's age with; None takes the clock.
        home: The home, where pictures of trials lie; None shows none.
    """
    trials = ranked(record.spec.objective, store.trials(record.id))
    notes = store.notes(record.id)
    content = CardContent(
        record,
        trials,
        record.now_s(time.time(), BootTime.now()) if now_s is None else now_s,
        [*(f"{node}." for node in store.unreachable_nodes(record.id)), *summarize_warnings(notes, _WARNINGS)],
    )
    pictures = trial_pictures.newest(notes, content.order) if home else []
    content = replace(content, pictures=pictures)
    metrics = objective_first(record.spec, store.metric_names(record.id))[:_PANELS]
    curves = {name: store.series(record.id, name) for name in metrics}
    made = Card(printable(content.text()), html(content, curves))
    if made.size_bytes > LIMIT_BYTES:
        made = Card(made.text, html(content, {}))
    made = replace(made, run=run_json(content, curves, min(RUN_LIMIT_BYTES, LIMIT_BYTES - made.size_bytes)))
    shown = trial_pictures.embedded(pictures, home, record.id, LIMIT_BYTES - made.size_bytes) if home else ""
    return replace(made, html=made.html.replace(IMAGES, shown))


def mime_bundle(experiment: Experiment) -> dict[str, JsonValue]:
    """Return the run card by MIME type."""
    return card(experiment.store, experiment.record, home=experiment.home).mime_bundle()
