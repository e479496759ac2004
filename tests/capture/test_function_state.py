"""Tests of what functions hold besides their code: defaults, attributes, closures, caches, registries."""

# Cells are written on one line each, however long, so that they read as a list.
# ruff: noqa: E501

import pytest

CASES = {
    "a Counter as default": (["from collections import Counter", "def f(x, seen=Counter()):\n    seen[x] += 1\n    return dict(seen)", "f('a'); f('b')"], "print(f('a'))"),
    "a list as default": (["def f(x, acc=[]):\n    acc.append(x)\n    return acc", "f(1)"], "print(f(2))"),
    "list() as default": (["def f(x, acc=list()):\n    acc.append(x)\n    return acc", "f(1)"], "print(f(2))"),
    "a nested default": (["def f(x, acc={'a': []}):\n    acc['a'].append(x)\n    return acc", "f(1)"], "print(f(2))"),
    "a computed default": (["data = [1]", "def f(n=len(data)): return n", "data.append(2)"], "print(f(), len(data))"),
    "a random default": (["import random", "def f(seed=random.random()): return seed"], "print(f())"),
    "an unchanged default": (["import math", "def f(a=1, b=(1, 2), c='x', *, d=math.pi, e=None, g=-1.5, h=math.floor): return a, b, c, d, e, g, h(2.5)"], "print(f())"),
    "a keyword default": (["def f(*, acc={}):\n    acc[len(acc)] = 1\n    return acc", "f()"], "print(f())"),
    "a computed keyword default": (["data = [1]", "def f(*, n=len(data), k=2): return n, k", "data.append(2)"], "print(f())"),
    "a lambda's default": (["n = 3", "f = lambda x, n=n, acc=[]: (acc.append(x), n, acc)[1:]", "f(1)\nn = 4"], "print(f(2))"),
    "a lambda as default": (["k = 2", "def f(g=lambda x: x * k): return g(3)", "k = 5"], "print(f())"),
    "a default shared with a name": (["box = []", "def f(x, box=box):\n    box.append(x)\n    return box", "f(1)"], "f(2); print(box, f.__defaults__[0] is box)"),
    "a default whose name was bound again": (["box = []", "def f(x, box=box):\n    box.append(x)\n    return box", "f(1)", "box = []"], "print(f(2), box)"),
    "a literal default that has another name": (["def f(x, acc=[]):\n    acc.append(x)\n    return acc", "acc = f.__defaults__[0]"], "acc.append(0); print(f(1))"),
    "defaults set by hand": (["def f(a, b=1): return a, b", "f.__defaults__ = (5, 6)"], "print(f())"),
    "defaults taken away": (["def f(a=1): return a", "f.__defaults__ = None"], "try: f()\nexcept TypeError: print('needs a')"),
    "keyword defaults set by hand": (["def f(*, b): return b", "f.__kwdefaults__ = {'b': 4}"], "print(f())"),
    "a function attribute": (["def f():\n    f.calls += 1\n    return f.calls\nf.calls = 0", "f(); f()"], "print(f())"),
    "attributes by setattr": (["def f(): return f.meta", "setattr(f, 'meta', {'a': [1]})", "f.meta['a'].append(2)"], "print(f())"),
    "a memo attribute": (["def fib(n):\n    if n not in fib.memo: fib.memo[n] = n if n < 2 else fib(n - 1) + fib(n - 2)\n    return fib.memo[n]\nfib.memo = {}", "fib(5)"], "print(len(fib.memo), fib(7))"),
    "a counter of calls by a decorator": (["def counted(f):\n    def run(*a):\n        run.calls += 1\n        return f(*a)\n    run.calls = 0\n    return run", "@counted\ndef f(x): return x", "f(1); f(2)"], "f(3); print(f.calls)"),
    "a counter in a closure": (["def counted(f):\n    n = 0\n    def run(*a):\n        nonlocal n\n        n += 1\n        return n, f(*a)\n    return run", "@counted\ndef f(x): return x", "f(1); f(2)"], "print(f(3))"),
    "a memo in a closure": (["import functools", "def memo(f):\n    cache = {}\n    @functools.wraps(f)\n    def run(x):\n        if x not in cache: cache[x] = f(x)\n        return cache[x], len(cache)\n    return run", "@memo\ndef f(x): return x * 2", "f(1); f(2)"], "print(f(1), f(3), f.__name__)"),
    "a decorator's arguments": (["def repeat(n):\n    def deco(f):\n        def run(*a): return [f(*a)] * n\n        return run\n    return deco", "N = 2", "@repeat(N)\ndef f(x): return x", "N = 3"], "print(f(1), N)"),
    "a generator-made closure": (["def make():\n    state = {'n': 0}\n    def up(): state['n'] += 1; return state['n']\n    def get(): return state['n']\n    return up, get", "up, get = make(); up()"], "print(up(), get())"),
    "partial": (["from functools import partial", "def f(a, b, c=0): return a, b, c", "g = partial(f, 1, c=[2])", "g.keywords['c'].append(3)"], "print(g(5), g.func is f)"),
    "wraps": (["import functools", "def deco(f):\n    @functools.wraps(f)\n    def run(*a): return 'run', f(*a)\n    return run", "@deco\ndef f(x):\n    'doc'\n    return x"], "print(f(1), f.__doc__, f.__wrapped__(2))"),
    "singledispatch": (["from functools import singledispatch", "@singledispatch\ndef show(x): return 'any'", "@show.register\ndef _(x: int): return 'int'", "@show.register(str)\ndef _(x): return 'str'"], "print(show(1), show('a'), show(1.5), show.registry[object](1))"),
    "singledispatch by a call": (["from functools import singledispatch", "@singledispatch\ndef show(x): return 'any'", "def of_int(x): return 'int', K\nK = 1", "show.register(int, of_int)\nK = 2"], "print(show(1), show('a'))"),
    "singledispatch of one's class": (["from functools import singledispatch", "class A: pass", "@singledispatch\ndef show(x): return 'any'", "@show.register\ndef _(x: A): return 'A'"], "print(show(A()), show(2))"),
    "a singledispatch method": (["from functools import singledispatchmethod", "class C:\n    @singledispatchmethod\n    def f(self, x): return 'any'\n    @f.register\n    def _(self, x: int): return 'int'"], "print(C().f(1), C().f('a'))"),
    "a cached function": (["import functools", "n = 2", "@functools.lru_cache\ndef f(x): return x * n", "f(1)"], "print(f(2))"),
    "a cached function by call": (["import functools", "def slow(x): return x * 2", "fast = functools.lru_cache(maxsize=4)(slow)"], "print(fast(2), fast.cache_info().maxsize)"),
    "a cached function in a dict": (["import functools", "fs = {'f': functools.lru_cache(lambda x: x + 1)}"], "print(fs['f'](2))"),
    "a global bound again": (["k = 1", "def f(): return k", "k = 2"], "print(f())"),
    "a global function bound again": (["def g(): return 'old'", "def f(): return g()", "def g(): return 'new'"], "print(f())"),
    "made by exec": (["exec('def f(x): return x + 1')"], "print(f(1))"),
    "made by eval": (["k = 3", "f = eval('lambda x: x + k')", "k = 4"], "print(f(1))"),
    "exec over a function with source": (["def f(x): return 'source'", "exec('def f(x): return \"exec\"')"], "print(f(1))"),
    "a class made by exec": (["exec('class A:\\n    n = 1\\n    def f(self): return self.n')", "A.n = 2"], "print(A().f())"),
    "a copy of a function": (["import types", "def f(x, n=1): return x, n, k\nk = 1", "g = types.FunctionType(f.__code__, globals(), 'g', (9,))"], "print(f(1), g(1), g.__name__)"),
    "a copy over its own name": (["import types", "def f(x, n=1): return x, n", "f = types.FunctionType(f.__code__, globals(), 'f', (9,))"], "print(f(1))"),
    "a copy with other globals": (["import types", "k = 1", "def f(x): return x, k", "f = types.FunctionType(f.__code__, {'k': 'other'}, 'f')"], "print(f(1))"),
    "a recursive function under an alias": (["def fact(n): return 1 if n < 2 else n * fact(n - 1)", "alias = fact", "def fact(n): return 'new'"], "print(alias(3), fact(3))"),
    "a replaced code": (["def f(): return 'old'", "def g(): return 'new'", "f.__code__ = g.__code__"], "print(f())"),
    "a renamed function": (["def f(): return 1", "f.__name__ = 'nice'; f.__doc__ = 'doc'"], "print(f.__name__, f.__doc__)"),
    "a decorator that counts": (["made = []", "def deco(f):\n    made.append(f.__name__)\n    def run(): return f(), len(made)\n    return run", "@deco\ndef a(): return 'a'", "@deco\ndef b(): return 'b'"], "print(a(), b(), made)"),
    "a decorator with a class": (["class Timer:\n    runs = 0\n    def __init__(self, f): self.f, self.n = f, 0\n    def __call__(self, *a):\n        self.n += 1; Timer.runs += 1\n        return self.f(*a), self.n, Timer.runs", "@Timer\ndef f(x): return x", "f(1)"], "print(f(2))"),
    "a decorator with a method": (["class Log:\n    def __init__(self): self.names = []\n    def __call__(self, f): self.names.append(f.__name__); return f", "log = Log()", "@log\ndef f(): return log.names"], "print(f(), len(log.names))"),
    "a registry by setdefault": (["hooks = {}", "def on(event):\n    def add(f):\n        hooks.setdefault(event, []).append(f)\n        return f\n    return add", "@on('start')\ndef a(): return 'a'", "@on('start')\ndef b(): return 'b'"], "print([f() for f in hooks['start']], hooks['start'][1] is b)"),
    "a registry run twice": (["hooks = []", "def on(f):\n    hooks.append(f)\n    return f", "@on\ndef a(): return 'a'", "@on\ndef a(): return 'a'"], "print([f() for f in hooks], hooks[0] is a, hooks[1] is a)"),
    "a dispatcher that keeps every definition": (["class Multi:\n    def __init__(self): self.fs = {}\n    def __call__(self, x): return self.fs[type(x).__name__](x)\nmulti = {}\ndef dispatch(f):\n    m = multi.setdefault(f.__name__, Multi())\n    m.fs[f.__annotations__['x'].__name__] = f\n    return m", "@dispatch\ndef area(x: int): return 'int'", "@dispatch\ndef area(x: str): return 'str'"], "print(area(1), area('a'))"),
    "a method kept as a function": (["class A:\n    def __init__(self): self.x = 1\n    def f(self): return self.x", "a = A()\nf = a.f", "a.x = 2"], "print(f(), f.__self__ is a)"),
    "an async function": (["import asyncio", "async def f(x=[]):\n    x.append(1)\n    return len(x)", "asyncio.run(f())"], "print(asyncio.run(f()))"),
    "a generator function": (["def gen(n, seen=set()):\n    for i in range(n):\n        seen.add(i)\n        yield i, len(seen)", "list(gen(2))"], "print(list(gen(3)))"),
    "a context manager": (["from contextlib import contextmanager", "depth = []", "@contextmanager\ndef inside(d=depth):\n    d.append(1)\n    yield len(d)", "with inside(): pass"], "with inside() as n: print(n, len(depth))"),
    "a function that sets a global": (["def up():\n    global total\n    total = total + 1 if 'total' in globals() else 1\n    return total", "up(); up()"], "print(up())"),
    "functions in a loop": (["fs = {}", "for i in range(3):\n    def f(x, i=i): return x, i\n    fs[i] = f"], "print(fs[0](1), fs[2](1), f(1))"),
    "a filled default under a decorator": (["import functools", "def loud(f):\n    @functools.wraps(f)\n    def run(*a): return 'loud', f(*a)\n    return run", "@loud\ndef f(x, acc=[]):\n    acc.append(x)\n    return acc", "f(1)"], "print(f(2))"),
    "a filled default of a decorated method": (["import functools", "def loud(f):\n    @functools.wraps(f)\n    def run(*a): return 'loud', f(*a)\n    return run", "class A:\n    @loud\n    def f(self, x, acc=[]):\n        acc.append(x)\n        return acc", "A().f(1)"], "print(A().f(2))"),
    "a filled default under a library's decorator": (["from contextlib import contextmanager", "@contextmanager\ndef f(x, acc=[]):\n    acc.append(x)\n    yield acc", "with f(1): pass"], "with f(2) as acc: print(acc)"),
    "a conditional definition": (["fast = True", "if fast:\n    def f(n=int()): return 'fast', n\nelse:\n    def f(n=1): return 'slow', n", "f.__defaults__ = (8,)", "fast = False"], "print(f())"),
    "a type alias in defaults": (["from typing import Optional", "def f(x: Optional[int] = None, y: 'list[int]' = []): return x, y"], "print(f())"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_function_state_is_the_same_elsewhere(notebook, case):
    cells, code = CASES[case]
    assert notebook(*cells).both(code)
