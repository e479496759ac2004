from math import prod

import pytest

from jupyter_autotrain.parallel.graph.graph import Family
from jupyter_autotrain.parallel.graph.rules import Call, describe


def splits(call):
    """For each loop that may be split: which dims of inputs and outputs run along it."""
    nest, known = describe(call)
    assert known
    found = set()
    for index, loop in enumerate(nest.loops):
        if loop.shardable:
            found.add((dims_along(index, nest.inputs), dims_along(index, nest.outputs)))
    return found


def dims_along(index, operands):
    return tuple(dims.index(index) if index in dims else None for dims in operands)


def test_a_linear_layer_splits_rows_columns_and_the_summed_dim():
    found = splits(Call("linear", ((4, 6, 8), (10, 8), (10,)), ((4, 6, 10),)))
    assert found == {
        ((0, None, None), (0,)),
        ((1, None, None), (1,)),
        ((2, 1, None), (None,)),  # summed: partial output
        ((None, 0, 0), (2,)),
    }


@pytest.mark.parametrize("kind", ["matmul", "bmm", "einsum"])
def test_products_agree_on_their_loops_however_they_are_written(kind):
    call = Call(kind, ((4, 6, 8), (4, 8, 10)), ((4, 6, 10),), {"equation": "bmk,bkn->bmn"})
    nest, known = describe(call)
    assert known
    assert sorted(loop.size for loop in nest.loops) == [4, 6, 8, 10]
    assert sum(i not in nest.outputs[0] for i in range(4)) == 1


def test_attention_splits_batch_and_heads_only():
    nest, _ = describe(Call("attention", ((2, 8, 16, 4), (2, 2, 16, 4), (2, 2, 16, 4)), ((2, 8, 16, 4),)))
    assert [(loop.name, loop.size) for loop in nest.loops if loop.shardable] == [("a", 2), ("h", 2)]
    assert nest.inputs[0][1] == nest.inputs[1][1] == nest.outputs[0][1]  # grouped heads move together


def test_a_rotated_row_of_a_norm_stays_whole():
    nest, _ = describe(Call("native_layer_norm", ((4, 6, 8), (8,), (8,)), ((4, 6, 8),), {"normalized_shape": [8]}))
    assert [loop.size for loop in nest.loops if loop.shardable] == [4, 6]


def test_broadcast_dims_of_an_elementwise_op_have_no_loop():
    nest, _ = describe(Call("add", ((4, 6, 8), (6, 1)), ((4, 6, 8),)))
    assert nest.inputs == ((0, 1, 2), (1, None))


@pytest.mark.parametrize(
    ("shape", "out", "pairs"),
    [
        ((4, 6, 8), (24, 8), {(0, 0), (2, 1)}),
        ((4, 6, 8), (4, 6, 2, 4), {(0, 0), (1, 1), (2, 2)}),
        ((4, 2, 6, 3), (4, 2, 18), {(0, 0), (1, 1), (2, 2)}),
        ((1, 12), (3, 4), {(1, 0)}),
        ((6, 4), (4, 6), {(0, 0)}),  # a common leading part of two
    ],
)
def test_a_view_keeps_the_leading_dim_of_each_group(shape, out, pairs):
    nest, _ = describe(Call("view", (shape,), (out,)))
    found = {
        (a, b) for a, i in enumerate(nest.inputs[0]) for b, j in enumerate(nest.outputs[0]) if i is not None and i == j
    }
    assert found == pairs


def test_a_view_split_by_its_loop_holds_the_same_elements_on_both_sides():
    shape = (4, 6, 8)
    out = (4, 48)
    nest, _ = describe(Call("view", (shape,), (out,)))
    ways = nest.loops[1].size
    inner_in = prod(shape[2:])
    inner_out = 1
    per_part_in = shape[1] // ways * inner_in
    assert per_part_in == out[1] // ways * inner_out


@pytest.mark.parametrize(
    ("call", "whole"),
    [
        (Call("slice", ((4, 8),), ((4, 5),), {"dim": 1}), 1),
        (Call("cat", ((4, 8), (4, 2)), ((4, 10),), {"dim": -1}), 1),
        (Call("_softmax", ((4, 8),), ((4, 8),), {"dim": -1}), 1),
        (Call("flip", ((4, 8),), ((4, 8),), {"dims": [1]}), 1),
        (Call("constant_pad_nd", ((4, 8),), ((4, 9),), {"pad": [0, 1]}), 1),
    ],
)
def test_a_dim_that_is_cut_joined_or_normalised_stays_whole(call, whole):
    nest, known = describe(call)
    assert known
    assert nest.inputs[0][whole] is None
    assert nest.inputs[0][1 - whole] is not None


def test_equal_parts_of_a_split_share_a_loop_and_unequal_parts_do_not():
    equal, _ = describe(Call("split", ((4, 12),), ((4, 4),) * 3, {"dim": 1}))
    unequal, _ = describe(Call("split", ((4, 12),), ((4, 8), (4, 4)), {"dim": 1}))
    assert equal.outputs[0][1] is not None
    assert unequal.outputs[0][1] is None


def test_sums_split_their_summed_dims_and_maxima_do_not():
    total, _ = describe(Call("sum", ((4, 8),), ((4,),), {"dim": [1]}))
    top, _ = describe(Call("amax", ((4, 8),), ((4,),), {"dim": [1]}))
    assert [loop.shardable for loop in total.loops] == [True, True]
    assert [loop.shardable for loop in top.loops] == [True, False]


def test_a_convolution_splits_batch_and_channels():
    found = splits(Call("convolution", ((2, 4, 9, 9), (8, 4, 3, 3), (8,)), ((2, 8, 7, 7),), {"groups": 1}))
    assert found == {((0, None, None), (0,)), ((1, 1, None), (None,)), ((None, 0, 0), (1,))}


def test_a_loss_splits_rows_and_classes():
    nest, _ = describe(Call("nll_loss_forward", ((32, 128), (32,)), ((),), {}))
    assert nest.family is Family.LOSS
    assert [loop.shardable for loop in nest.loops] == [True, True]
    assert nest.outputs == ((),)


def test_experts_may_be_split_by_token_expert_and_inner_width():
    call = Call(
        "experts",
        ((32, 16), (32, 2), (32, 2), (4, 48, 16), (4, 16, 24)),
        ((32, 16),),
        {"experts": 4, "inner": 24},
    )
    nest, known = describe(call)
    assert known
    assert sorted(loop.size for loop in nest.loops if loop.shardable) == [4, 24, 32]


@pytest.mark.parametrize("call", [Call("fft_magic", ((4, 8),), ((4, 8),)), Call("linear", ((4,),), ((4, 8),))])
def test_an_unknown_op_is_replicated(call):
    nest, known = describe(call)
    assert not known
    assert nest.family is Family.UNKNOWN
    assert nest.loops == ()


def test_an_unnamed_pointwise_op_follows_its_elements():
    nest, known = describe(Call("brand_new", ((4, 8),), ((4, 8),), pointwise=True))
    assert known
    assert len(nest.loops) == 2
