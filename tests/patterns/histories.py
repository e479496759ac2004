"""Random histories of notebooks: what their cells are made of, and how their last cell looks at what there is."""

# Cells are written on one line each, however long, so that they read as a list.
# ruff: noqa: E501

from hypothesis import strategies as st

LOOK = """
def look(**roots):
    seen, keep, buffers = {}, [], []
    def shared(start):
        if start not in buffers:
            buffers.append(start)
        return f'buffer {buffers.index(start)}'
    def array(x):
        base = x
        while type(base.base).__name__ == 'ndarray':
            base = base.base
        return f'{x.dtype}{x.shape}{x.tolist()} {shared(base.__array_interface__["data"][0])} {x.flags.writeable}'
    def tensor(x):
        kind = (x.dtype, x.requires_grad, x.grad_fn is not None, type(x).__name__)
        return f'{kind}{x.tolist()} {shared(x.untyped_storage().data_ptr())} grad={say(x.grad) if x.is_leaf else None}'
    def function(x):
        around = [say(cell.cell_contents) for cell in x.__closure__ or ()]
        try:
            gave = say(x(3))
        except Exception as error:
            gave = type(error).__name__
        return f'{x.__name__}{say(x.__defaults__)}{say(vars(x))}{around} gives {gave}'
    def klass(x):
        own = {k: v for k, v in sorted(vars(x).items()) if not k.startswith('_')}
        return f'{x.__name__}{[say(b) for b in x.__bases__ if b is not object]}{say(own)}'
    def parts(x):
        kind = type(x).__name__
        if kind == 'dict' or kind == 'Counter':
            return '{' + ', '.join(f'{say(k)}: {say(v)}' for k, v in x.items()) + '}'
        if kind in ('list', 'tuple', 'deque'):
            return f'{kind}({", ".join(say(v) for v in x)})'
        if kind in ('set', 'frozenset'):
            return f'{kind}({sorted(map(str, x))})'
        if kind == 'ndarray':
            return array(x)
        if kind in ('Tensor', 'Parameter'):
            return tensor(x)
        if kind == 'function':
            return function(x)
        if isinstance(x, type):
            return klass(x) if x.__module__ == '__main__' else x.__name__
        if kind == 'method':
            return f'method {say(x.__func__)} of {say(x.__self__)}'
        if kind == 'property':
            return f'property {say(x.fget)}'
        if kind in ('classmethod', 'staticmethod'):
            return f'{kind} {say(x.__func__)}'
        if kind == 'partial':
            return f'partial {say(x.func)}{say(x.args)}{say(x.keywords)}'
        if kind == '_lru_cache_wrapper':
            return f'cached {say(x.__wrapped__)} {x.cache_info()[3]}'
        if kind in ('Random', 'Generator', 'RandomState'):
            return f'{kind} next {x.random()}'
        if kind == 'Linear':
            return f'Linear {say(x.weight)}{say(x.bias)}{x.training}'
        if kind == 'SGD':
            return f'SGD {say(x.param_groups)}'
        if type(x).__module__ == '__main__':
            return f'{say(type(x))} with {say(vars(x))}'
        return kind
    def say(x):
        if x is None or isinstance(x, (bool, int, float, str)):
            return repr(x)
        if type(x) in (tuple, frozenset):
            return parts(x)  # equal ones cannot be distinguished but by identity
        if id(x) in seen:
            return f'#{seen[id(x)]}'
        seen[id(x)] = len(seen)
        keep.append(x)
        return f'#{seen[id(x)]}={parts(x)}'
    for name, x in roots.items():
        print(f'{name}: {say(x)}')
"""

PYTHON = (
    "<N0> = [<I0>, <I1>]",
    "<N0> = {'k': <N1>, 'n': <I0>}",
    "<N0> = <N1>",
    "<N0> = [<N1>, <N2>, <N1>]",
    "<N0>, <N1> = <N1>, <N0>",
    "<N0>.append(<I0>)",
    "<N0>.append(<N1>)",
    "<N0> += [<I0>]",
    "<N0>['k'] = <N1>",
    "<N0> = list(<N1>)",
    "import copy\n<N0> = copy.deepcopy(<N1>)",
    "del <N0>",
    "<N0> = <I0>\n<N1> = missing_name\n<N2> = <I1>",
    "for <N0> in range(<I0>):\n    <N1>.append(<N0>)",
    "globals()['<N0>'] = [<I0>]",
    "def <F0>(x):\n    return (x, <N0>, <I0>)",
    "def <F0>(x, seen=[]):\n    seen.append(x)\n    return len(seen)",
    "from collections import Counter\ndef <F0>(x, seen=Counter()):\n    seen[x] += 1\n    return dict(seen)",
    "def <F0>(x, y=<N0>):\n    return (x, y)",
    "def <F0>(x):\n    <N0>.append(x)\n    return len(<N0>)",
    "def <F0>(x):\n    global <N0>\n    <N0> = x\n    return x",
    "def <F0>(x):\n    return <F1>(x) if x > <I0> else <N0>",
    "<F0> = lambda x: (x, <N0>)",
    "<F0> = <F1>",
    "def count():\n    n = <I0>\n    def up(x):\n        nonlocal n\n        n += x\n        return n\n    return up\n<F0> = count()",
    "def twice(f):\n    calls = []\n    def run(x):\n        calls.append(x)\n        return (f(x), len(calls))\n    return run\n@twice\ndef <F0>(x):\n    return x + <I0>",
    "from functools import partial\n<F0> = partial(<F1>, <N0>)",
    "from functools import lru_cache\n@lru_cache\ndef <F0>(x):\n    return (x, <I0>)",
    "<F0>(<I0>)",
    "<N0> = <F0>(<I0>)",
    "<N0> = [<F0>, <C0>]",
    "<F0>.mark = <N0>",
    "class <C0>:\n    v = <I0>\n    def m(self, x):\n        return (self.v, x, <N0>)",
    "class <C0>:\n    count = int()\n    seen = list()\n    def __init__(self):\n        <C0>.count += 1\n        <C0>.seen.append(<I0>)",
    "class <C0>(<C1>):\n    w = <I1>",
    "class <C0>(<C0>):\n    def more(self, x):\n        return (x, <I0>)",
    "from dataclasses import dataclass, field\n@dataclass\nclass <C0>:\n    a: int = <I0>\n    b: list = field(default_factory=list)",
    "<C0>.v = <I0>",
    "<C0>.v = <N0>",
    "setattr(<C0>, 'late', <F0>)",
    "<C0>.m = lambda self, x: (x, <I0>)",
    "def late(self, x):\n    return (x, <I0>)\n<C0>.late = late\ndel late",
    "<C0>.p = property(lambda self: <I0>)",
    "del <C0>.v",
    "<C0>.seen.append(<I1>)",
    "def opened(cls):\n    cls.extra = <N0>\n    return cls\n<C0> = opened(<C0>)",
    "def method_of(cls):\n    def add(f):\n        setattr(cls, f.__name__, f)\n        return f\n    return add\n@method_of(<C0>)\ndef <F0>(self):\n    return <I0>",
    "<N0> = <C0>()",
    "<N0> = <C0>()\n<N0>.own = <N1>",
    "<N0>.own = <I0>",
    "<N0> = <C0>().m",
    "<C0> = <C1>",
    "import random\nrandom.seed(<I0>)",
    "import random\n<N0> = random.random()",
    "import random\n<N0> = random.Random(<I0>)",
    "<N0>.random()",
    "import random\nrandom.shuffle(<N0>)",
    "import decimal\ndecimal.getcontext().prec = <I0> + 2",
    "import os\nos.environ['AT_MARK'] = '<I0>'",
    "import string\nstring.mark = <N0>",
    "import logging\nlogging.getLogger('app').setLevel(<I0> + 10)",
    "import sys\nsys.setrecursionlimit(3000 + <I0>)",
    "import warnings\nwarnings.simplefilter('error')",
    "import math\nmath.floor = lambda x: <I0>",
)  # fmt: skip
CHANGES = (
    "<N0>.append(<I0>)",
    "<N0>[0] = <I0>",
    "<N0> += <N1>",
    "<N0>['k'] = <I0>",
    "<F0>(<I0>)",
    "<C0>.v = <I0>",
    "<N0> = <C0>()",
    "<N0>.own = <I0>",
    "<N0>.step()",
    "<N0>.backward()",
    "def <F0>(x):\n    return (<F1>, <N0>)",
    "class <C0>(<C1>):\n    pass",
    "pass",
)  # fmt: skip
STATE_PYTHON = (
    "import random\nprint('random:', random.random())",
    "import decimal\nprint('decimal, getcontext:', decimal.Decimal(1) / 3)",
    "import os\nprint('os, environ, AT_MARK:', os.environ.get('AT_MARK'))",
    "import string\nlook(mark=getattr(string, 'mark', None))",
    "import logging\nprint('logging, getLogger:', logging.getLogger('app').level)",
    "import sys\nprint('sys, setrecursionlimit:', sys.getrecursionlimit())",
    "import warnings\nprint('warnings, simplefilter:', warnings.filters[0][0])",
    "import math\nprint('math, floor:', math.floor(2.5))",
    "pass",
)  # fmt: skip
NAMES = ("a", "b", "c")
FUNCTIONS = ("f", "g")
CLASSES = ("A", "B")
START_PYTHON = [
    LOOK,
    "a, b = [1], {'k': [2]}\nc = [a, b]",
    "def f(x): return ('f', x, a)\ng = lambda x: ('g', x)",
    "class A:\n    v = 1\n    seen = []\n    def m(self, x=0): return ('A', x)\nclass B(A):\n    pass",
]
NEEDS = {
    "warnings.filters": "warnings.simplefilter(",
}
"""What differs between any two processes, unless the history sets it."""


def filled(template, names, functions, classes, numbers):
    """Return a template with its places filled."""
    out = template
    for mark, pool in (("N", names), ("F", functions), ("C", classes), ("I", numbers)):
        for index, value in enumerate(pool):
            out = out.replace(f"<{mark}{index}>", str(value))
    return out


def cells_of(templates):
    """One cell of some templates."""
    pools = (
        st.permutations(NAMES),
        st.permutations(FUNCTIONS),
        st.permutations(CLASSES),
        st.lists(st.integers(0, 9), min_size=2, max_size=2),
    )
    return st.builds(filled, st.sampled_from(templates), *pools)


def forgiving(code, otherwise="pass"):
    """Code that may fail."""
    indented = code.replace("\n", "\n    ")
    return f"try:\n    {indented}\nexcept Exception:\n    {otherwise}"


def looking(names):
    """Look at the names that are there, one line each."""
    fetch = [forgiving(f"there['{name}'] = {name}") for name in names]
    return "\n".join(["there = {}", *fetch, "look(**there)"])


@st.composite
def histories(draw, start, templates, states):
    """Return the cells of a notebook; the last one looks at what the others made. Cells may be run again."""
    cells = list(start)
    for step in draw(st.lists(cells_of(templates) | st.integers(0, 9), min_size=2, max_size=9)):
        cells.append(step if isinstance(step, str) else cells[1 + step % (len(cells) - 1)])
    state = draw(st.sampled_from(states))
    change = draw(cells_of(CHANGES))
    text = "\n".join(cells)
    fair = all(needed in text for one, needed in NEEDS.items() if one in state)
    names = draw(st.permutations([*NAMES, *FUNCTIONS, *CLASSES]))[: draw(st.integers(2, 7))]
    return [*cells, "\n".join([state if fair else "pass", forgiving(change, "print('failed')"), looking(names)])]


PYTHON_HISTORIES = histories(START_PYTHON, PYTHON, STATE_PYTHON)
