"""How definitions stand in the script: as their source wherever that is the same, else told in what they differ."""

from jupyter_autotrain.capture.differences import format_differences

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
    """The lines of a script that were copied from no cell."""
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


def test_numbers_set_later_are_written_out(notebook):
    captured = notebook("class Net:\n    n = 1\n    x = 2", "Net.n = 5", "del Net.x").capture("print(Net.n)")
    assert own_part(captured) == ["Net.n = 5", "del Net.x"]


def test_a_cache_that_stays_here_is_told(notebook):
    cell = "import functools\n@functools.lru_cache\ndef f(x): return x\nfs = {'g': functools.lru_cache(len)}"
    book = notebook(cell)
    assert format_differences(book.capture("print(f(1))").differences) == ""
    book.run("f(1)")
    assert "what f has cached" in format_differences(book.capture("print(f(1))").differences)


def test_an_attribute_that_cannot_travel_is_made_again_and_told(notebook):
    book = notebook(
        "import io, threading\nclass Log:\n    out = io.TextIOWrapper(io.BytesIO())\n    lock = threading.Lock()"
    )
    captured = book.capture("print(Log.out.closed)")
    assert [d.text for d in captured.differences] == ["Log.out is made again by its statement, being an open file"]
    assert "Log.lock" not in format_differences(captured.differences)


def test_a_definition_with_an_effect_travels_by_value_and_says_why(notebook):
    book = notebook("ALL = []", "def register(f):\n    ALL.append(f)\n    return f", "@register\ndef f(): return 1")
    assert book.row("f()", "f").stale == "by value: making it calls register, which uses ALL"
