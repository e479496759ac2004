"""Objects that do not say how they are hashed are ordered by their addresses in a set."""

import pytest

from tests.capture.notebook_fixtures import told_with_hash_seed

NODE = """\
class Node:
    def __init__(self, parents=()):
        self.parents = {kept}
    def visit(self):
        return [parent for parent in self.parents]
node = Node((Node(), Node()))
"""


def test_addresses_order_a_set_also_where_the_hash_seed_is_fixed():
    by_attribute = told_with_hash_seed("1", [NODE.format(kept="set(parents)")], "visited = node.visit()")
    assert any("self.parents" in text for text in by_attribute)
    by_name = ["class Node:\n    pass\nnodes = {Node(), Node()}\nwords = {'a', 'b'}"]
    assert any("nodes" in text for text in told_with_hash_seed("1", by_name, "print(list(nodes))"))
    assert told_with_hash_seed("1", by_name, "print(list(words))") == []


@pytest.mark.parametrize(
    ("kept", "told"), [("set(parents)", True), ("frozenset(parents)", True), ("tuple(parents)", False)]
)
def test_a_loop_over_an_attribute_that_is_a_set_is_told(notebook, kept, told):
    differences = notebook(NODE.format(kept=kept)).capture("visited = node.visit()").differences
    assert any("self.parents" in difference.text for difference in differences) is told
