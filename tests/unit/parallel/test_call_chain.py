"""From `plan` to the recurrence in at most six calls, as the docstring of the search package says."""

import inspect
import re

import jupyter_autotrain
from jupyter_autotrain import plan
from jupyter_autotrain.parallel import search
from jupyter_autotrain.parallel.search import StrategySpace
from jupyter_autotrain.parallel.search.stage.folding import ChainTables
from tests.example_graphs import gpt

MOST_CALLS = 6


def documented():
    return re.findall(r"^    ([\w.]+)", inspect.getdoc(search), flags=re.MULTILINE)


def running():
    """Qualified names of the package's functions that are running, outermost first."""
    names = []
    frame = inspect.currentframe()
    while frame:
        if frame.f_globals.get("__name__", "").startswith(jupyter_autotrain.__name__):
            names.append(frame.f_code.co_qualname)
        frame = frame.f_back
    return tuple(reversed(names))


def test_the_recurrence_is_reached_as_documented_in_at_most_six_calls(monkeypatch):
    chains = set()
    path = ChainTables.path

    def recorded(self, *args):
        chains.add((*running(), "ChainTables.path"))
        return path(self, *args)

    monkeypatch.setattr(ChainTables, "path", recorded)
    graph = gpt(width=64, layers=2, heads=4, sequence=32, batch=8, vocabulary=128)
    plan(graph, None, "4xA100", space=StrategySpace(stages=(1,)), execute=False)
    assert tuple(documented()) in chains
    assert len(documented()) - 1 <= MOST_CALLS
