"""Objects that do not say how they are hashed are ordered by their addresses in a set."""

import pytest

NODE = """\
class Node:
    def __init__(self, parents=()):
        self.parents = {kept}
    def visit(self):
        return [parent for parent in self.parents]
node = Node((Node(), Node()))
"""


def test_addresses_order_a_set_also_where_the_hash_seed_is_fixed(notebook, monkeypatch):
    monkeypatch.setenv("PYTHONHASHSEED", "1")
    by_attribute = notebook(NODE.format(kept="set(parents)"))
    assert any("self.parents" in one.text for one in by_attribute.capture("visited = node.visit()").differences)
    by_name = notebook("class Node:\n    pass\nnodes = {Node(), Node()}\nwords = {'a', 'b'}")
    assert any("nodes" in one.text for one in by_name.capture("print(list(nodes))").differences)
    assert not by_name.capture("print(list(words))").differences


@pytest.mark.parametrize(
    ("kept", "told"), [("set(parents)", True), ("frozenset(parents)", True), ("tuple(parents)", False)]
)
def test_a_loop_over_an_attribute_that_is_a_set_is_told(notebook, kept, told):
    differences = notebook(NODE.format(kept=kept)).capture("visited = node.visit()").differences
    assert any("self.parents" in difference.text for difference in differences) is told
