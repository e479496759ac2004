"""The one cache of a search: what goes in, what stays, and that no frozen value keeps one of its own."""

import inspect
import pkgutil
from dataclasses import fields, is_dataclass, replace
from functools import cached_property
from importlib import import_module

import pytest

from jupyter_autotrain import parallel
from jupyter_autotrain.parallel.cost.table_cache import RECENT, TableCache
from jupyter_autotrain.parallel.graph.prepare import prepare
from jupyter_autotrain.parallel.search import solve
from jupyter_autotrain.parallel.search.stage.pipeline_problem import PipelineProblem
from tests.example_graphs import gpt

MUTABLE = ("dict[", "list[", "set[", "ModelTables")


def frozen_values():
    for info in pkgutil.walk_packages(parallel.__path__, f"{parallel.__name__}."):
        for found in vars(import_module(info.name)).values():
            own = inspect.isclass(found) and found.__module__ == info.name
            if own and is_dataclass(found) and found.__dataclass_params__.frozen:
                yield found


@pytest.mark.parametrize("value", sorted(frozen_values(), key=lambda value: value.__qualname__))
def test_a_frozen_value_holds_no_cache_of_its_own(value):
    lazy = [name for name, member in vars(value).items() if isinstance(member, cached_property)]
    filled = [f.name for f in fields(value) if str(f.type).startswith(MUTABLE)]
    assert lazy + filled == []


def test_a_graph_knows_makers_and_readers_of_its_own_ops():
    graph = gpt(width=64, layers=1, heads=4, sequence=32, batch=8, vocabulary=128)
    fewer = replace(graph, ops=graph.ops[:-1])
    last = graph.ops[-1]
    assert graph.producers[last.outputs[0].tensor] == last.id
    assert last.outputs[0].tensor not in fewer.producers
    assert last.id in graph.consumers[last.inputs[0].tensor]
    assert last.id not in fewer.consumers.get(last.inputs[0].tensor, ())


def test_an_entry_is_made_once_and_kinds_are_apart():
    cache = TableCache()
    assert cache.get(int, "key", lambda: 1) == 1
    assert cache.get(int, "key", lambda: 2) == 1
    assert cache.get(float, "key", lambda: 3.0) == 3.0
    assert cache.count(int) == cache.count(float) == 1
    assert cache.count(str) == 0


def test_of_large_entries_those_used_last_are_kept():
    cache = TableCache()
    for key in range(RECENT):
        cache.recent(int, key, lambda: 0)
    assert cache.recent(int, 0, lambda: 1) == 0  # used again, so that 1 is now the oldest
    cache.recent(int, RECENT, lambda: 0)
    assert cache.count(int) == RECENT
    assert cache.recent(int, 0, lambda: 1) == 0
    assert cache.recent(int, 1, lambda: 1) == 1


def test_a_search_run_makes_one_cache_and_passes_it_to_everything(monkeypatch):
    made = []

    def count(kind):
        init = kind.__init__

        def counted(self, *args, **named):
            made.append(kind)
            init(self, *args, **named)

        monkeypatch.setattr(kind, "__init__", counted)

    count(TableCache)
    count(PipelineProblem)
    solve(prepare(gpt(width=64, layers=2, heads=4, sequence=32, batch=8, vocabulary=128)), "4xA100")
    pipelines = made.count(PipelineProblem)
    assert pipelines > 0
    assert made.count(TableCache) == 1 + pipelines  # the tables of a pipeline are dropped with it
