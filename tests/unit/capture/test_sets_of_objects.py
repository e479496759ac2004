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


@pytest.mark.parametrize(
    ("kept", "told"), [("set(parents)", True), ("frozenset(parents)", True), ("tuple(parents)", False)]
)
def test_a_loop_over_an_attribute_that_is_a_set_is_told(notebook, kept, told):
    differences = notebook(NODE.format(kept=kept)).capture("visited = node.visit()").differences
    assert any("self.parents" in difference.text for difference in differences) is told
