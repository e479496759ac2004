"""Captured variables that the cell changes are named: the trial changes copies of them."""

import pytest

from jupyter_autotrain.capture.differences import DifferenceKind

CLASSES = """
class Module:
    def __init__(self, *parts):
        self._parameters, self._modules, self.training = {}, {str(i): p for i, p in enumerate(parts)}, True
    def train(self): self.training = True
class Optimizer:
    def __init__(self, module): self.param_groups = [{"params": [p for m in module._modules.values() for p in m._parameters.values()]}]
    def step(self): self.steps = 1
class Bag:
    def __init__(self): self.items = []
    def put(self, x): self.items.append(x)
    def peek(self): return self.items
layer = Module(); layer._parameters["w"] = [1.0]
"""  # noqa: E501 - one definition, one line


def copied(book, code, **options):
    lines = [one.text for one in book.capture(code, **options).differences if one.kind is DifferenceKind.COPIED]
    assert len(lines) <= 1
    return lines[0].partition(":")[0].split(", ") if lines else []


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("a.append(1)", ["a"]),
        ("a += [2]", ["a"]),
        ("a[0] = 1; d['x'] = 2", ["a", "d"]),
        ("del d['k']", ["d"]),
        ("d['list'].append(3)", ["d"]),
        ("d.update(z=1)", ["d"]),
        ("import random\nrandom.shuffle(a)", ["a"]),
        ("b = a\nprint(a, d, n)", []),
        ("n += 1\nn -= 2\nprint(n)", []),
        ("t += (1,)\ns += 'x'", []),
        ("a = []\na.append(1)", []),
        ("print(sorted(a), a.index(1), d.get('k'), len(a))", []),
        ("bag.put(1)", ["bag"]),
        ("print(bag.peek())", []),
        ("fill(a)", ["a"]),
        ("fill(to=a)", ["a"]),
        ("outer(a, d)", ["a"]),
        ("look(a)", []),
        ("log(1)", ["a"]),
        ("shadow(1)", []),
        ("def local(a):\n    a.append(1)\nprint(local)", []),
        ("net.train()", ["net"]),
        ("opt.step()\nprint(net)", ["net", "opt"]),
        ("print(net.training, opt)", []),
        ("setattr(net, 'x', 1)", ["net"]),
        ("net.x = 1", ["net"]),
        ("it = iter(a)\nnext(it)", []),
    ],
)
def test_what_the_cell_changes_is_named(notebook, code, names):
    book = notebook(
        CLASSES,
        "a, d, n, t, s = [1], {'k': 1, 'list': []}, 1, (1,), 'x'",
        "bag, net = Bag(), Module(layer)\nopt = Optimizer(net)",
        "def fill(to): to.append(1)\ndef outer(x, y): fill(x); print(y)\ndef look(x): return len(x)",
        "def log(x): a.append(x)\ndef shadow(x):\n    a = []\n    a.append(x)",
    )
    assert copied(book, code) == names


def test_what_comes_back_is_left_out(notebook):
    book = notebook("a, b = [1], [2]")
    assert copied(book, "a.append(1)\nb.append(1)", returns=["a"]) == ["b"]
    assert copied(book, "a.append(1)", returns=["a"]) == []


def test_the_line_says_what_follows_and_stays_short(notebook):
    book = notebook(*(f"v{i} = []" for i in range(9)))
    (one,) = book.capture("v1.append(1)").differences
    assert one.line == "copied: v1: the trial changes a copy; this one here stays as it is (`returns:` brings it back)"
    (many,) = book.capture("\n".join(f"v{i}.append(1)" for i in range(9))).differences
    assert many.text.startswith("v0, v1, v2, v3, v4, v5 and 3 more: the trial changes copies; these here stay")


def test_arrays_and_tables_that_give_something_new_are_not_named(notebook):
    book = notebook("import numpy as np\nx = np.arange(3.)\ny = np.arange(3)")
    assert copied(book, "z = x.copy()\nprint(np.add(x, y), x.sum())") == []
    assert copied(book, "x -= 1\nx[0] = 2\ny.sort(0)") == ["x", "y"]
