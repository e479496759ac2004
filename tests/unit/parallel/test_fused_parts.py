"""Products whose output is cut into parts: their loops may be split, so that a device has its share of each part."""

import pytest

from jupyter_autotrain.parallel.graph.rules import Call, describe


def loops(call):
    nest, _ = describe(call)
    (out,) = nest.outputs
    return [None if loop is None else (nest.loops[loop].size, nest.loops[loop].shardable) for loop in out]


@pytest.mark.parametrize("kept", [32, 8])
def test_a_part_that_is_cut_out_is_split_as_the_smallest_part_may_be(kept):
    arguments = {"dim": 1, "parts": [32, 8, 8]}
    assert loops(Call("slice", ((4, 48),), ((4, kept),), arguments)) == [(4, True), (8, True)]


def test_a_dim_that_is_cut_otherwise_stays_whole():
    assert loops(Call("slice", ((4, 48),), ((4, 32),), {"dim": 1})) == [(4, True), None]


def test_parts_without_a_common_size_are_not_split():
    assert loops(Call("slice", ((4, 48),), ((4, 31),), {"dim": 1, "parts": [31, 17]})) == [(4, True), (1, False)]


torch = pytest.importorskip("torch")

from jupyter_autotrain.parallel import api  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.plan import Degrees  # noqa: E402 - after the check for torch


class Cutting(torch.nn.Module):
    """A product that is cut by a function, and another that joins what is made of it."""

    def __init__(self, cut):
        super().__init__()
        self.up = torch.nn.Linear(16, 24)
        self.down = torch.nn.Linear(8, 16)
        self.cut = cut

    def forward(self, x):
        a, b, c = self.cut(self.up(x))
        return self.down(a[..., :8] * b * c).square().mean()


PARTS = {
    "by places": lambda made: (made[..., :8], made[..., 8:16], made[..., -8:]),
    "by places, not in order": lambda made: (made[..., 16:], made[..., 8:16], made[..., :8]),
    "with a rest": lambda made: (made[..., :8], made[..., 8:16], made[..., 8:16]),
    "that overlap": lambda made: (made[..., :8], made[..., 4:12], made[..., 16:]),
    "of positions": lambda made: tuple(made[:, at : at + 1].repeat(1, 3, 1)[..., :8] for at in range(3)),
}


@pytest.mark.parametrize("how", PARTS)
def test_the_parts_of_a_product_are_noted_where_they_make_up_the_whole(how):
    graph = api.plan(Cutting(PARTS[how]), torch.zeros(4, 3, 16), "1xA100").graph
    expected = '{"up": [8, 8, 8]}' if how.startswith("by places") else None
    assert graph.meta.get("parts") == expected


def test_a_product_whose_parts_are_cut_out_is_split_over_a_tensor_axis():
    plan = api.plan(Cutting(PARTS["by places"]), torch.zeros(4, 3, 16), "2xA100", pins=Degrees(tensor=2))
    assert plan.beyond == ()
    up, down = plan.recipe().tensor.modules
    assert (up.path, up.sizes) == ("up", (8, 8, 8))
    assert (down.path, down.sizes) == ("down", ())
