"""Tests of what classes hold besides methods: counters, caches, registries, whatever their initialisers were."""

# Cells are written on one line each, however long, so that they read as a list.
# ruff: noqa: E501

import pytest

CASES = {
    "int() as a counter": (["class Net:\n    count = int()\n    def __init__(self): Net.count += 1", "nets = [Net(), Net()]"], "Net(); print(Net.count)"),
    "a literal counter": (["class Net:\n    count = 0\n    def __init__(self): Net.count += 1", "a = Net()"], "Net(); print(Net.count)"),
    "dict() as a registry": (["class Net:\n    reg = dict()", "Net.reg['a'] = 1"], "print(Net.reg)"),
    "Counter()": (["from collections import Counter", "class Net:\n    seen = Counter()", "Net.seen['a'] += 3"], "print(Net.seen)"),
    "defaultdict(list)": (["from collections import defaultdict", "class Net:\n    by = defaultdict(list)", "Net.by['a'].append(1)"], "Net.by['b'].append(2); print(Net.by)"),
    "a literal cache filled by a method": (["class Net:\n    cache = {}\n    def get(self, k):\n        return self.cache.setdefault(k, len(self.cache))", "Net().get('x'); Net().get('y')"], "print(Net().get('z'), Net().get('x'))"),
    "an unchanged cache that has another name": (["class Net:\n    cache = {}", "cache = Net.cache"], "cache['a'] = 1; print(Net.cache)"),
    "an unchanged expression": (["import math", "class Net:\n    k = math.sqrt(16)\n    sizes = [64] * 3\n    t = tuple(range(3))"], "print(Net.k, Net.sizes, Net.t)"),
    "computed from what changed": (["data = [1, 2]", "class Net:\n    n = len(data)", "data.append(3)"], "print(Net.n, len(data))"),
    "random": (["import random", "class Net:\n    seed = random.random()"], "print(Net.seed)"),
    "of the time": (["import time", "class Net:\n    made = time.perf_counter_ns()"], "print(Net.made)"),
    "itertools.count": (["import itertools", "class Net:\n    ids = itertools.count()\n    def __init__(self): self.id = next(Net.ids)", "a, b = Net(), Net()"], "print(Net().id, a.id, b.id)"),
    "a counter made through the class": (["class Net:\n    n = 0\n    @classmethod\n    def up(cls): cls.n += 1", "class Sub(Net): pass", "Net.up(); Sub.up(); Sub.up()"], "print(Net.n, Sub.n, 'n' in vars(Sub))"),
    "a new attribute set by a function": (["class Net: pass", "def fill():\n    Net.best = {'loss': 1.5}", "fill()"], "print(Net.best)"),
    "a changed literal list": (["class CFG:\n    lr = 1\n    layers = [1, 2]", "CFG.layers.append(3)\nCFG.lr = 0.5"], "print(CFG.lr, CFG.layers)"),
    "nested config": (["class CFG:\n    class opt:\n        lr = 1\n        extra = dict()", "CFG.opt.lr = 0.5; CFG.opt.extra['k'] = 2"], "print(CFG.opt.lr, CFG.opt.extra)"),
    "config through vars": (["class CFG:\n    lr = float()\n    n = 3", "for k, v in {'lr': 0.5, 'n': 4, 'new': [1]}.items(): setattr(CFG, k, v)"], "print({k: v for k, v in vars(CFG).items() if not k.startswith('__')})"),
    "a registry filled by a decorator": (["REG = {}", "def register(name):\n    def add(cls):\n        REG[name] = cls\n        return cls\n    return add", "@register('a')\nclass A:\n    def f(self): return 'A'", "@register('b')\nclass B(A):\n    pass"], "print(sorted(REG), REG['a'] is A, REG['b']().f(), isinstance(B(), REG['a']))"),
    "a registry list not doubled": (["ALL = []", "def register(f):\n    ALL.append(f)\n    return f", "@register\ndef one(): return 1", "@register\ndef two(): return 2"], "print([f() for f in ALL], ALL[0] is one, two())"),
    "a registry read through its functions only": (["REG = []", "def register(f):\n    REG.append(f.__name__)\n    return f", "def count(): return len(REG)", "@register\ndef one(): return 1"], "print(one(), count())"),
    "a registry counted by a global": (["n = 0", "def tag(f):\n    global n\n    n += 1\n    f.number = n\n    return f", "@tag\ndef one(): return 1", "@tag\ndef two(): return 2"], "print(one.number, two.number, n)"),
    "a registry class": (["class Registry:\n    def __init__(self): self.d = {}\n    def register(self, f):\n        assert f.__name__ not in self.d\n        self.d[f.__name__] = f\n        return f", "models = Registry()", "@models.register\ndef small(): return 's'", "@models.register\nclass Big:\n    pass"], "print(sorted(models.d), models.d['small'] is small, models.d['Big'] is Big)"),
    "a class registry on the class": (["class Base:\n    reg = {}\n    @classmethod\n    def register(cls, other):\n        cls.reg[other.__name__] = other\n        return other", "@Base.register\nclass A(Base): pass"], "print(list(Base.reg), Base.reg['A'] is A, issubclass(A, Base))"),
    "__init_subclass__ with a registry": (["class Base:\n    reg = {}\n    n = 0\n    def __init_subclass__(cls, **kw):\n        super().__init_subclass__(**kw)\n        Base.n += 1\n        Base.reg[cls.__name__] = cls", "class A(Base): pass", "class B(A):\n    def f(self): return super().__repr__()[:9]"], "print(list(Base.reg), Base.reg['A'] is A, Base.reg['B'] is B, Base.n, A in B.__mro__)"),
    "__init_subclass__ whose subclass is not read": (["class Base:\n    reg = []\n    def __init_subclass__(cls): Base.reg.append(cls)", "class A(Base):\n    def f(self): return 'A'"], "print([c().f() for c in Base.reg])"),
    "__init_subclass__ into a global": (["ALL = []", "class Base:\n    def __init_subclass__(cls): ALL.append(cls.__name__)", "class A(Base): pass", "class B(Base): pass"], "print(ALL, A.__name__, B)"),
    "a metaclass with a registry": (["class Meta(type):\n    reg = {}\n    def __new__(m, name, bases, d):\n        cls = super().__new__(m, name, bases, d)\n        m.reg[name] = cls\n        return cls", "class A(metaclass=Meta): pass", "class B(A): pass"], "print(list(Meta.reg), Meta.reg['A'] is A, Meta.reg['B'] is B, type(A) is Meta)"),
    "a singleton metaclass": (["class Single(type):\n    made = {}\n    def __call__(cls, *a):\n        if cls not in cls.made: cls.made[cls] = super().__call__(*a)\n        return cls.made[cls]", "class Conf(metaclass=Single):\n    def __init__(self): self.x = 1", "Conf().x = 5"], "print(Conf().x, Conf() is Conf())"),
    "abstract registration": (["from abc import ABC", "class Base(ABC): pass", "class X: pass", "Base.register(X)"], "print(isinstance(X(), Base), issubclass(X, Base))"),
    "a dataclass with a factory": (["from dataclasses import dataclass, field", "@dataclass\nclass P:\n    x: int = 1\n    tags: list = field(default_factory=lambda: [1])\n    n: int = field(default=4, repr=False)", "P.x = 3"], "print(P(), P.x, P().tags is P().tags, P.n)"),
    "a frozen dataclass with state": (["from dataclasses import dataclass\nfrom typing import ClassVar", "@dataclass(frozen=True)\nclass P:\n    x: int\n    made: ClassVar[list] = []", "P.made.append(P(1))"], "print(P.made, P.made[0] == P(1))"),
    "an enum with automatic values": (["from enum import Enum, auto", "class E(Enum):\n    A = auto()\n    B = auto()\n    def f(self): return self.value"], "print(list(E), E.B.f())"),
    "a typed dictionary": (["from typing import TypedDict", "class T(TypedDict):\n    x: int"], "print(T(x=1), T.__annotations__)"),
    "slots": (["class S:\n    __slots__ = ['x']\n    made = []\n    def __init__(self): self.x = 1", "s = S(); S.made.append(s)"], "print(S.made[0] is s, s.x, S.made[0].x)"),
    "a descriptor with state": (["class Desc:\n    def __init__(self): self.seen = 0\n    def __set_name__(self, o, n): self.name = n\n    def __get__(self, o, t): self.seen += 1; return self.name, self.seen", "class A:\n    x = Desc()", "A.x; A().x"], "print(A.x)"),
    "a lambda as attribute": (["class A:\n    act = lambda self, x: x + 1\n    f = staticmethod(lambda x: x * 2)"], "print(A().act(1), A.f(4))"),
    "a function as attribute": (["def relu(x): return max(x, 0)", "class A:\n    act = relu\n    s = staticmethod(relu)"], "print(A.act is relu, A.s(3))"),
    "an attribute in an if": (["flag = True", "class A:\n    if flag:\n        x = [1]\n        def f(self): return 'yes'\n    else:\n        def f(self): return 'no'", "flag = False", "A.x.append(2)"], "print(A.x, A().f())"),
    "an attribute in a loop": (["class A:\n    for i in range(3): locals()[f'x{i}'] = i", "A.x1 = 5"], "print(A.x0, A.x1, A.x2)"),
    "state shared with a name": (["shared = {'n': 1}", "class A:\n    cfg = shared", "shared['n'] = 2"], "print(A.cfg is shared, A.cfg)\nshared['n'] = 3; print(A.cfg)"),
    "state of a name bound again": (["cfg = {'n': 1}", "class A:\n    cfg = cfg", "cfg = {'n': 2}"], "print(A.cfg, cfg)"),
    "an instance of its own": (["class Node:\n    root = None\n    def __init__(self, v): self.v = v", "Node.root = Node(1)"], "print(Node.root.v, type(Node.root) is Node)"),
    "instances remembered": (["class Net:\n    all = list()\n    def __init__(self): Net.all.append(self)", "a = Net(); b = Net()"], "print(Net.all[0] is a, Net.all[1] is b, len(Net.all))"),
    "a cached method": (["import functools", "class Net:\n    calls = []\n    @functools.lru_cache\n    def f(self, x):\n        Net.calls.append(x)\n        return x", "net = Net()", "def g(): return net.f(1)"], "print(g(), g(), Net.calls)"),
    "a method's default": (["class Net:\n    def f(self, x, seen=[]):\n        seen.append(x)\n        return seen", "Net().f(1)"], "print(Net().f(2))"),
    "a method's computed default": (["k = [1]", "class Net:\n    def f(self, n=len(k)): return n", "k.append(2)"], "print(Net().f())"),
    "a method's attribute": (["class Net:\n    def f(self):\n        Net.f.calls += 1\n        return Net.f.calls\n    f.calls = 0", "Net().f()"], "print(Net().f())"),
    "a class made by type()": (["def f(self): return 'f', self.x", "Made = type('Made', (), {'x': 1, 'f': f})", "Made.x = 5"], "print(Made().f())"),
    "a class in a function": (["def make(k):\n    class In:\n        n = k\n        def f(self): return k, self.n\n    return In", "A = make(1); B = make(2)", "A.n = 7"], "print(A().f(), B().f(), A is B)"),
    "a class whose body counts": (["import itertools", "ids = itertools.count()", "class A:\n    id = next(ids)", "class B:\n    id = next(ids)"], "print(A.id, B.id, next(ids))"),
    "a class whose body appends": (["log = []", "class A:\n    log.append('A')"], "print(log, A.__name__)"),
    "an exception with state": (["class Stop(Exception):\n    count = int()", "Stop.count = 3"], "try: raise Stop('x')\nexcept Stop as e: print(e, e.count)"),
    "generic": (["from typing import Generic, TypeVar", "T = TypeVar('T')", "class Box(Generic[T]):\n    made = list()\n    def __init__(self, v: T): self.v = v; Box.made.append(v)", "Box(1)"], "print(Box.made, Box[int](3).v)"),
    "the tag of a decorator on classes": (["def tag(cls):\n    cls.tag = cls.__name__.lower()\n    return cls", "@tag\nclass A:\n    def f(self): return self.tag", "A.tag = 'x'"], "print(A().f())"),
    "an inner class that a list holds": (["class A:\n    class B:\n        n = 0\n    kinds = [B]", "A.B.n = 4"], "print(A.kinds[0].n, A.kinds[0] is A.B)"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_class_state_is_the_same_elsewhere(notebook, case):
    cells, code = CASES[case]
    assert notebook(*cells).both(code)
