"""A cell whose outcome may depend on the order of a set is told so, where the kernel's own order is random."""

import ast

import pytest

from jupyter_autotrain.capture.state import hash_order
from tests.capture.notebook_fixtures import told_with_hash_seed

NAMES = {
    "words": ["a", "b"], "vocabulary": {"a", "b"}, "numbers": [3, 1], "few": {3, 1}, "table": {"a": 1}, "k": 3,
}  # fmt: skip

DEPENDS = [
    "for w in vocabulary: print(w)", "x = list(set(words))", "index = {w: i for i, w in enumerate(set(words))}",
    "x = [w for w in {'a', 'b'}]", "s = set(words)\nfor w in s: print(w)", "print(hash('a') % 7)",
    "for w in set(words) - {'a'}: print(w)", "for w in vocabulary.union(words): print(w)", "w = vocabulary.pop()",
    "print(*vocabulary)", "print(', '.join(vocabulary))", "def f():\n    return list(vocabulary)\nprint(f())",
    "x = list({w.lower() for w in words})",
]  # fmt: skip
DOES_NOT = [
    "for w in words: print(w)", "x = sorted(set(words))", "print(len(set(words)), 'a' in vocabulary)", "x = list(few)",
    "for n in set(numbers): print(n)", "x = [i for i in {1, 2}]", "for k in table: print(k)", "print(max(vocabulary))",
    "x = sorted(w for w in vocabulary)", "y = {w for w in vocabulary}\nprint(len(y))",
    "for n in set(range(9)): print(n)",
]  # fmt: skip


@pytest.fixture
def random_hashes(monkeypatch):
    """Simulate a kernel that was started without PYTHONHASHSEED."""
    monkeypatch.delenv("PYTHONHASHSEED", raising=False)


@pytest.mark.usefixtures("random_hashes")
@pytest.mark.parametrize("code", DEPENDS)
def test_a_cell_that_looks_at_the_order_of_a_set_is_told(code):
    (told,) = hash_order.find([ast.parse(code)], NAMES)
    assert "the order of `" in told.text


@pytest.mark.usefixtures("random_hashes")
@pytest.mark.parametrize("code", DOES_NOT)
def test_a_cell_that_looks_at_no_order_is_not_told(code):
    assert list(hash_order.find([ast.parse(code)], NAMES)) == []


def test_nothing_is_told_where_the_kernel_itself_has_that_hash_seed():
    assert told_with_hash_seed("5", ["words = ['a', 'b']"], "labels = list(set(words))") == []
    assert len(told_with_hash_seed("5", ["words = ['a', 'b']"], "labels = list(set(words))", seed=3)) == 1


def test_a_hash_seed_that_a_cell_sets_comes_too_late_for_the_kernel(notebook, monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "5")
    book = notebook("import os\nos.environ['PYTHONHASHSEED'] = '5'", "words = ['a', 'b']")
    assert len(book.capture("labels = list(set(words))").differences) == 1


@pytest.mark.usefixtures("random_hashes")
def test_the_line_names_the_set(notebook):
    book = notebook("words = ['a', 'b']")
    (one,) = book.capture("labels = list(set(words))").differences
    assert one.text == "the order of `set(words)`: that of trials is fixed, this kernel's is its own"


NODE = """\
class Node:
    def __init__(self, parents=()):
        self.parents = {kept}
    def visit(self):
        return [parent for parent in self.parents]
node = Node((Node(), Node()))
"""


@pytest.mark.parametrize(
    ("kept", "told"), [("set(parents)", True), ("frozenset(parents)", True), ("tuple(parents)", False)]
)
def test_a_loop_over_an_attribute_that_is_a_set_is_told(notebook, kept, told):
    differences = notebook(NODE.format(kept=kept)).capture("visited = node.visit()").differences
    assert any("self.parents" in difference.text for difference in differences) is told
