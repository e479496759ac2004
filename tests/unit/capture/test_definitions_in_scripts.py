"""Tests of definitions in the script: their source wherever that is the same, else told in what they differ."""

# Cells are written on one line each, however long, so that they read as a list.
# ruff: noqa: E501

import pytest

from jupyter_autotrain.capture.differences import format_differences
from jupyter_autotrain.errors import CaptureError

ORDINARY = """
class Net(Base):
    '''A net.'''
    depth: int = 3
    sizes = (64, 64)
    names = ["a", "b"]
    kind = math.floor
    def __init__(self, width=2, *, act=math.sqrt, more=()):
        self.width, self.act = width, act
    @property
    def area(self): return self.width
    @staticmethod
    def helper(x, n=1): return x * n
    @classmethod
    def make(cls): return cls()
    @functools.cached_property
    def slow(self): return 1
    @functools.wraps(print)
    def __call__(self, x): return self.act(x)
""".strip()


def own_part(captured):
    """Return the lines of a script that were copied from no cell."""
    lines = zip(captured.script.splitlines(), captured.source_map, strict=True)
    return [line for line, origin in lines if line and not origin and not line.startswith("import")]


def test_an_unchanged_class_is_its_source_and_nothing_else(notebook):
    book = notebook("import functools, math", "class Base:\n    pass", ORDINARY)
    captured = book.capture("print(Net()(4.0))")
    assert own_part(captured) == []
    assert ORDINARY in captured.script


def test_an_unchanged_function_is_its_source_and_nothing_else(notebook):
    source = "def f(x, n=K, acc=[], *, kind=int, **rest):\n    return x"
    captured = notebook("K = 3", source).capture("print(f(1))")
    assert [row.how for row in captured.captured if row.name == "f"] == ["source"]
    assert [row.name for row in captured.captured if "." in row.name] == []


def test_a_pure_decorator_runs_again_in_the_trial(notebook):
    deco = "import functools\ndef loud(f):\n    @functools.wraps(f)\n    def run(*a): return f(*a)\n    return run"
    captured = notebook(deco, "@loud\ndef f(x): return x").capture("print(f(1))")
    assert [row.how for row in captured.captured if row.name == "f"] == ["source"]


@pytest.mark.parametrize(
    "source",
    [
        "@dataclass\nclass One:\n    x: int\n    tags: list = field(default_factory=list)\n    def f(self): return self.x",
        "@dataclass(frozen=True, order=True)\nclass One:\n    x: int = 3\n    def f(self): return self.x",
        "class One(enum.Enum):\n    A = 1\n    B = enum.auto()\n    def f(self): return self.value",
        "class One(NamedTuple):\n    x: int = 1\n    def f(self): return self.x",
        "class One(TypedDict):\n    x: int",
        "class One(abc.ABC):\n    @abc.abstractmethod\n    def f(self): ...",
        "class One(Generic[T]):\n    def f(self, x: T) -> T: return x",
        "class One(BaseModel):\n    rate: float = 0.1\n    @field_validator('rate')\n    @classmethod\n    def f(cls, x): return x",
        "class One(torch.nn.Module):\n    def __init__(self):\n        super().__init__()\n    def forward(self, x): return x",
        "@functools.lru_cache\ndef One(x): return x",
        "@torch.no_grad()\ndef One(x): return x",
        "One = lambda x, k=3: x * k",
    ],
)
def test_an_ordinary_definition_of_any_kind_is_its_source(notebook, source):
    book = notebook(
        "import abc, enum, functools, torch\nfrom dataclasses import dataclass, field\nfrom pydantic import BaseModel, "
        "field_validator\nfrom typing import Generic, NamedTuple, TypedDict, TypeVar\nT = TypeVar('T')",
        source,
    )
    row = book.row("print(One)", "One")
    assert (row.how, row.stale) == ("source", "")


def test_a_class_that_has_changed_travels_by_value_and_says_why(notebook):
    book = notebook("class Net:\n    n = 1\n    x = 2", "Net.n = 5", "del Net.x")
    assert book.row("print(Net.n)", "Net").stale == "by value: it has changed since its statement"


def test_a_cache_that_stays_here_is_told(notebook):
    cell = "import functools\n@functools.lru_cache\ndef f(x): return x\nfs = {'g': functools.lru_cache(len)}"
    book = notebook(cell)
    assert format_differences(book.capture("print(f(1))").differences) == ""
    book.run("f(1)")
    assert "what f has cached" in format_differences(book.capture("print(f(1))").differences)


def test_a_lock_that_a_class_makes_is_made_again(notebook):
    book = notebook("import threading\nclass Log:\n    lock = threading.Lock()\n    n = 1")
    captured = book.capture("with Log.lock: print(Log.n)")
    assert [row.how for row in captured.captured if row.name == "Log"] == ["source"]
    assert captured.differences == ()
    book.run("Log.n = 2")
    with pytest.raises(CaptureError, match=r"Log.*holds a lock"):
        book.capture("with Log.lock: print(Log.n)")


def test_a_definition_with_an_effect_travels_by_value_and_says_why(notebook):
    book = notebook("ALL = []", "def register(f):\n    ALL.append(f)\n    return f", "@register\ndef f(): return 1")
    assert book.row("f()", "f").stale == "by value: making it calls register, which uses ALL"
