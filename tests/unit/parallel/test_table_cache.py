"""The one cache of a search: what goes in, what stays, and that no frozen value keeps one of its own."""

import inspect
import pkgutil
from dataclasses import MISSING, fields, is_dataclass
from functools import cached_property
from importlib import import_module

import pytest

from jupyter_autotrain.parallel import cost, search
from jupyter_autotrain.parallel.cost.table_cache import RECENT, TableCache
from jupyter_autotrain.parallel.graph.build import gpt
from jupyter_autotrain.parallel.graph.prepare import prepare
from jupyter_autotrain.parallel.search import solve
from jupyter_autotrain.parallel.search.stage.pipeline import Pipeline

PACKAGES = (cost, search)
CONTAINERS = (dict, list, set)


def frozen_values():
    for package in PACKAGES:
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for found in vars(import_module(info.name)).values():
                own = inspect.isclass(found) and found.__module__ == info.name
                if own and is_dataclass(found) and found.__dataclass_params__.frozen:
                    yield found


@pytest.mark.parametrize("value", sorted(frozen_values(), key=lambda value: value.__qualname__))
def test_a_frozen_value_holds_no_cache_of_its_own(value):
    lazy = [name for name, member in vars(value).items() if isinstance(member, cached_property)]
    filled = [f.name for f in fields(value) if f.default_factory in CONTAINERS and f.name.startswith("_")]
    hidden = [f.name for f in fields(value) if f.default_factory is not MISSING and f.default is not MISSING]
    assert lazy + filled + hidden == []


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
    count(Pipeline)
    solve(prepare(gpt(width=64, layers=2, heads=4, sequence=32, batch=8, vocabulary=128)), "4xA100")
    pipelines = made.count(Pipeline)
    assert pipelines > 0
    assert made.count(TableCache) == 1 + pipelines  # the tables of a pipeline are dropped with it
