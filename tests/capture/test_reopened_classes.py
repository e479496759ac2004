"""Classes that were changed after their statement ran: what a class has now is what travels."""

# Cells are written on one line each, however long, so that they read as a list.
# ruff: noqa: E501

import pytest

NET = "class Net:\n    n = 1\n    def __init__(self): self.w = 2\n    def step(self): return 'step', self.w\n    def other(self): return 'other'"
ADD = "def add_to_class(Class):\n    def wrapper(obj):\n        setattr(Class, obj.__name__, obj)\n    return wrapper"
PATCH = "def patch(f):\n    cls = next(iter(f.__annotations__.values()))\n    setattr(cls, f.__name__, f)\n    return globals().get(f.__name__)"

CASES = {
    "setattr of a function": ([NET, "def g(self): return 'g', self.w", "setattr(Net, 'extra', g)"], "print(Net().extra(), Net.extra is g)"),
    "setattr in a loop": ([NET, "for i in range(3):\n    setattr(Net, f'm{i}', lambda self, i=i: (i, self.w))"], "print(Net().m0(), Net().m2())"),
    "setattr in a function": ([NET, "def extend(cls):\n    def more(self): return 'more', self.w, K\n    cls.more = more\nK = 5", "extend(Net)", "K = 6"], "print(Net().more())"),
    "an assigned function": ([NET, "def g(self): return 'g', self.w\nNet.extra = g"], "print(Net().extra())"),
    "an assigned lambda": ([NET, "Net.step = lambda self: 'new'"], "print(Net().step())"),
    "add_to_class": ([ADD, NET, "@add_to_class(Net)\ndef late(self): return 'late', self.w", "@add_to_class(Net)\ndef step(self): return 'newer', self.late()"], "print(Net().late(), Net().step())"),
    "add_to_class on a subclass": ([ADD, NET, "class Sub(Net): pass", "@add_to_class(Net)\ndef late(self): return 'late'"], "print(Sub().late(), Sub.__mro__[1] is Net)"),
    "a patch decorator": ([PATCH, NET, "@patch\ndef late(self: Net): return 'late', self.w"], "print(Net().late())"),
    "a method patched with the old one inside": ([NET, "old = Net.step\ndef step(self): return 'wrapped', old(self)\nNet.step = step"], "print(Net().step())"),
    "a class that extends itself": ([NET, "class Net(Net):\n    def step(self): return 'sub', super().step()"], "print(Net().step(), len(Net.__mro__))"),
    "a class that extends itself twice": ([NET, "class Net(Net):\n    a = 1", "class Net(Net):\n    def other(self): return 'third', super().other()"], "print(Net().other(), Net.a, len(Net.__mro__))"),
    "an instance from before the class extended itself": ([NET, "net = Net()", "class Net(Net):\n    def step(self): return 'sub', super().step()"], "print(net.step(), Net().step(), isinstance(net, Net), isinstance(Net(), type(net)))"),
    "a deleted method": ([NET, "del Net.other"], "print(hasattr(Net, 'other'), Net().step())"),
    "a deleted attribute": ([NET, "del Net.n"], "print(hasattr(Net, 'n'))"),
    "a new initialiser": ([NET, "def init(self): self.w = 7\nNet.__init__ = init"], "print(Net().step())"),
    "a wrapped initialiser": ([NET, "def wrap(cls):\n    before = cls.__init__\n    def init(self):\n        before(self)\n        self.w += 40\n    cls.__init__ = init", "wrap(Net)"], "print(Net().step())"),
    "an inherited method patched on the subclass": (["class A:\n    def f(self): return 'A'", "class B(A): pass", "B.f = lambda self: ('B', A.f(self))"], "print(B().f(), A().f())"),
    "a library's method patched on a subclass": (["from collections import OrderedDict", "class D(OrderedDict): pass", "D.first = lambda self: next(iter(self))"], "print(D(a=1).first())"),
    "a borrowed method": (["class A:\n    def f(self): return 'A', self.x", "class B:\n    x = 3", "B.f = A.f"], "print(B().f())"),
    "a property patched in": ([NET, "Net.twice = property(lambda self: self.w * 2)"], "print(Net().twice)"),
    "a property replaced": (["class P:\n    @property\n    def v(self): return 1", "P.v = property(lambda self: 2)"], "print(P().v)"),
    "a setter added": (["class P:\n    _v = 1\n    @property\n    def v(self): return self._v", "def put(self, v): self._v = v\nP.v = P.v.setter(put)"], "p = P(); p.v = 9; print(p.v)"),
    "a class method patched in": ([NET, "@classmethod\ndef make(cls): return cls().w\nNet.make = make"], "print(Net.make())"),
    "a static method patched in": ([NET, "Net.s = staticmethod(lambda x: x + 1)"], "print(Net.s(1), Net().s(2))"),
    "a static method replaced": (["class S:\n    @staticmethod\n    def f(): return 1", "S.f = staticmethod(lambda: 2)"], "print(S.f())"),
    "a mixin patched": (["class Mix:\n    def hi(self): return 'hi'", "class Net(Mix): pass", "Mix.bye = lambda self: 'bye'"], "print(Net().bye(), Net().hi())"),
    "bases replaced": (["class A:\n    def f(self): return 'A'", "class B:\n    def f(self): return 'B'", "class C(A): pass", "C.__bases__ = (B,)"], "print(C().f(), C.__bases__ == (B,))"),
    "a patched class cell that ran again": ([NET, "Net.step = lambda self: 'new'", NET], "print(Net().step())"),
    "patched, then its instance": ([NET, "net = Net()", "Net.step = lambda self: ('new', self.w)", "net.w = 11"], "print(net.step(), isinstance(net, Net))"),
    "a patched dataclass": (["from dataclasses import dataclass", "@dataclass\nclass P:\n    x: int\n    y: int = 2", "def norm(self): return self.x + self.y\nP.norm = norm", "P.__repr__ = lambda self: 'P!'"], "print(P(1).norm(), P(1), P(1) == P(1))"),
    "a patched enum": (["from enum import Enum", "class Color(Enum):\n    RED = 1", "Color.nice = lambda self: self.name.title()"], "print(Color.RED.nice(), Color(1) is Color.RED)"),
    "a patched named tuple": (["from typing import NamedTuple", "class P(NamedTuple):\n    x: int = 1", "P.double = lambda self: self.x * 2"], "print(P(4).double(), P())"),
    "a patched slotted class": (["class S:\n    __slots__ = ('x',)\n    def __init__(self): self.x = 1", "S.get = lambda self: self.x"], "s = S()\ntry: s.y = 1\nexcept AttributeError: print('slots')\nprint(s.get())"),
    "a patched abstract class": (["from abc import ABC, abstractmethod", "class B(ABC):\n    @abstractmethod\n    def f(self): ...", "class D(B):\n    def f(self): return 'f'", "B.g = lambda self: ('g', self.f())"], "print(D().g())\ntry: B()\nexcept TypeError: print('abstract')"),
    "two versions of one class": (["class C:\n    def v(self): return 'old'", "c = C()", "class C:\n    def v(self): return 'new'", "d = C()"], "print(c.v(), d.v(), C().v(), isinstance(c, C), isinstance(d, C), type(c) is type(d))"),
    "two versions and a subclass of the old": (["class C:\n    def v(self): return 'old'", "class S(C): pass", "s = S()", "class C:\n    def v(self): return 'new'"], "print(s.v(), S().v(), issubclass(S, C), isinstance(s, S))"),
    "a nested class patched": (["class Out:\n    class In:\n        k = 1\n        def f(self): return self.k", "Out.In.f = lambda self: ('patched', self.k)\nOut.In.k = 3"], "print(Out.In().f())"),
    "a decorator gives another object": (["def single(cls): return cls()", "@single\nclass config:\n    a = 1\n    def f(self): return self.a", "config.a = 5"], "print(config.f())"),
    "a decorator gives a subclass": (["def sub(cls):\n    class Sub(cls):\n        tag = 'sub'\n    return Sub", "@sub\nclass Net:\n    def f(self): return 'f', self.tag", "Net.tag = 'changed'"], "print(Net().f(), Net.__name__)"),
    "an operator patched in": ([NET, "Net.__add__ = lambda self, other: ('sum', self.w, other)"], "print(Net() + 1)"),
    "hash and equality patched": ([NET, "Net.__eq__ = lambda self, o: self.w == o.w\nNet.__hash__ = lambda self: self.w", "table = {Net(): 'found'}"], "print(table[Net()])"),
    "patched by type.__setattr__": ([NET, "type.__setattr__(Net, 'step', lambda self: 'raw')"], "print(Net().step())"),
    "patched by update of another's dict": ([NET, "class Mix:\n    def a(self): return 'a', self.w\n    def b(self): return 'b'", "for k, v in vars(Mix).items():\n    if not k.startswith('__'): setattr(Net, k, v)"], "print(Net().a(), Net().b())"),
    "patched in a with block": ([NET, "from contextlib import nullcontext\nwith nullcontext():\n    Net.step = lambda self: 'with'"], "print(Net().step())"),
    "a method whose code was replaced": ([NET, "def g(self): return 'code'\nNet.step.__code__ = g.__code__"], "print(Net().step())"),
    "name, doc and module": ([NET, "Net.__doc__ = 'new doc'\nNet.__name__ = 'Renamed'\nNet.__qualname__ = 'Re.named'"], "print(Net.__doc__, Net.__name__, Net.__qualname__, Net().step())"),
    "annotations": (["class A:\n    x: int = 1", "A.__annotations__['y'] = str"], "print(A.__annotations__)"),
    "a private attribute": (["class A:\n    __hidden = 1\n    def get(self): return self.__hidden", "A._A__hidden = 8"], "print(A().get())"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_reopened_class_is_the_same_elsewhere(notebook, case):
    cells, code = CASES[case]
    assert notebook(*cells).both(code)
