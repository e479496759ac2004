"""Rules held to torch: an op run on the slices of any loop that may be split gives the slices of the whole result."""

import pytest
import torch
from torch import nn
from torch.nn import functional

from jupyter_autotrain.parallel.graph.rules import Call, describe
from jupyter_autotrain.parallel.trace import trace

PARTS = 2


def sliced(tensor, places, loop, part):
    """Return the slice that one of two devices holds when a loop is split."""
    for dim, place in enumerate(places):
        if place == loop:
            tensor = tensor.chunk(PARTS, dim)[part]
    return tensor


def joined(parts, places, loop):
    dims = [dim for dim, place in enumerate(places) if place == loop]
    return torch.cat(parts, dims[0]) if dims else sum(parts)


def holds(kind, run, inputs, args=None):
    """Check every loop that may be split; gives how many there are."""
    whole = run(*inputs)
    whole = whole if isinstance(whole, tuple) else (whole,)
    shapes = tuple(tuple(t.shape) for t in inputs), tuple(tuple(t.shape) for t in whole)
    nest, known = describe(Call(kind, *shapes, args or {}))
    assert known
    read = {place for places in nest.inputs for place in places}
    loops = [place for place, loop in enumerate(nest.loops) if loop.shardable and place in read]
    for loop in loops:
        found = []
        for part in range(PARTS):
            mine = [sliced(t, places, loop, part) for t, places in zip(inputs, nest.inputs, strict=True)]
            out = run(*mine)
            found.append(out if isinstance(out, tuple) else (out,))
        for expected, places, *parts in zip(whole, nest.outputs, *found, strict=True):
            torch.testing.assert_close(joined(parts, places, loop), expected)
    return len(loops)


def numbers(*shape, dtype=torch.float64):
    return torch.randn(*shape, dtype=dtype, generator=torch.Generator().manual_seed(len(shape)))


@pytest.mark.parametrize("kind", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("both", [True, False])
def test_samples_of_a_recurrent_layer_are_independent(kind, first, both):
    gates = {"lstm": 4, "gru": 3}.get(kind, 1)
    directions = 1 + both
    states = 1 + (kind == "lstm")
    x = numbers(*((4, 3, 6) if first else (3, 4, 6)))
    hidden = [numbers(directions, 4, 5) for _ in range(states)]
    weights = [numbers(*shape) for _ in range(directions) for shape in ((gates * 5, 6), (gates * 5, 5))]

    def run(x, *rest):
        held = rest[:states]
        parameters = list(rest[states:])
        carried = held if states > 1 else held[0]
        return getattr(torch, kind)(x, carried, parameters, False, 1, 0.0, False, both, first)

    args = {"samples": 0 if first else 1, "states": states}
    assert holds(kind, run, [x, *hidden, *weights], args) == 1


@pytest.mark.parametrize(("mode", "loops"), [("sum", 2), ("mean", 2), ("max", 2)])
def test_bags_and_features_of_an_embedding_bag_are_independent(mode, loops):
    ids = torch.arange(24).reshape(4, 6) % 8
    nest, _ = describe(Call("embedding_bag", ((8, 6), (4, 6)), ((4, 6),), {"mode": mode}))
    rows = [loop for loop in nest.loops if loop.name == "v"]
    assert [loop.shardable for loop in rows] == [mode != "max"]

    def run(table, ids):
        missing = table.shape[0] < 8
        return (
            functional.embedding_bag(ids, numbers(8, 6), mode=mode) * 0
            if missing
            else functional.embedding_bag(ids, table, mode=mode)
        )

    # Rows of the table are checked below: a device needs to know which rows it has.
    splits = [place for place, loop in enumerate(nest.loops) if loop.shardable and loop.name != "v"]
    assert len(splits) == loops
    for loop in splits:
        parts = []
        for i in (0, 1):
            inputs = zip((numbers(8, 6), ids), nest.inputs, strict=True)
            parts.append(run(*(sliced(t, p, loop, i) for t, p in inputs)))
        torch.testing.assert_close(joined(parts, nest.outputs[0], loop), run(numbers(8, 6), ids))


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_devices_that_hold_rows_of_a_table_give_summands_of_a_bag(mode):
    table = numbers(8, 6)
    ids = torch.arange(24).reshape(4, 6) % 8
    halves = [torch.zeros_like(table), torch.zeros_like(table)]
    halves[0][:4] = table[:4]
    halves[1][4:] = table[4:]
    parts = [functional.embedding_bag(ids, half, mode=mode) for half in halves]
    torch.testing.assert_close(sum(parts), functional.embedding_bag(ids, table, mode=mode))


@pytest.mark.parametrize("dims", [[2], [1], [1, 2], [-1]])
def test_a_fourier_transform_splits_all_but_the_dims_it_transforms(dims):
    args = {"dim": dims}
    real = numbers(4, 6, 8)
    spectrum = torch.complex(numbers(4, 6, 8), numbers(4, 6, 8))
    count = 3 - len(dims)
    assert holds("_fft_c2c", lambda x: torch.fft.fftn(x, dim=dims), [spectrum], args) == count
    assert holds("_fft_r2c", lambda x: torch.fft.rfftn(x, dim=dims), [real], args) == count
    assert holds("_fft_c2r", lambda x: torch.fft.irfftn(x, dim=dims), [spectrum], args) == count


CASES = {
    "view_as_real": (torch.view_as_real, [torch.complex(numbers(4, 6), numbers(4, 6))], {}, 2),
    "view_as_complex": (torch.view_as_complex, [numbers(4, 6, 2)], {}, 2),
    "repeat": (lambda x: x.repeat(3, 1, 2), [numbers(4, 6)], {"repeats": [3, 1, 2]}, 1),
    "unfold": (lambda x: x.unfold(1, 3, 1), [numbers(4, 6)], {"dimension": 1, "size": 3, "step": 1}, 1),
    "glu": (functional.glu, [numbers(4, 6)], {"dim": -1}, 1),
    "pixel_shuffle": (lambda x: functional.pixel_shuffle(x, 2), [numbers(4, 8, 2, 2)], {}, 2),
    "im2col": (lambda x: functional.unfold(x, 2), [numbers(4, 2, 4, 4)], {}, 2),
    "col2im": (lambda x: functional.fold(x, (4, 4), 2, stride=2), [numbers(4, 8, 4)], {}, 2),
    "grid_sampler_2d": (
        lambda x, grid: functional.grid_sample(x, grid, align_corners=False),
        [numbers(4, 2, 4, 4), numbers(4, 3, 3, 2)],
        {},
        2,
    ),
    "replication_pad2d": (lambda x: functional.pad(x, (1, 1, 1, 1), mode="replicate"), [numbers(4, 2, 4, 4)], {}, 2),
    "avg_pool2d": (lambda x: functional.avg_pool2d(x, 2), [numbers(2, 4, 4)], {}, 1),
    "avg_pool1d": (lambda x: functional.avg_pool1d(x, 2), [numbers(2, 4, 4)], {}, 2),
    "_cdist_forward": (torch.cdist, [numbers(2, 4, 6), numbers(2, 8, 6)], {}, 3),
    "linalg_inv_ex": (torch.linalg.inv, [numbers(4, 3, 3)], {}, 1),
    "linalg_solve_triangular": (
        lambda a, b: torch.linalg.solve_triangular(a.tril() + 4 * torch.eye(3), b, upper=False),
        [numbers(4, 3, 3), numbers(4, 3, 2)],
        {},
        1,
    ),
}


@pytest.mark.parametrize("kind", CASES)
def test_an_op_on_slices_gives_slices_of_its_result(kind):
    run, inputs, args, loops = CASES[kind]
    assert holds(kind, run, inputs, args) == loops


@pytest.mark.parametrize("kind", ["unsafe_split", "unsafe_split_with_sizes", "unsafe_chunk"])
def test_an_unsafe_split_is_a_split(kind):
    shapes = ((4, 8),), ((4, 4), (4, 4))
    assert describe(Call(kind, *shapes, {"dim": 1})) == describe(Call("split", *shapes, {"dim": 1}))


STRIDED = [
    ((4, 6), (4, 6), (6, 1)),  # itself
    ((4, 6), (6, 4), (1, 6)),  # transposed
    ((4, 6), (24,), (1,)),  # a view
    ((24,), (4, 6), (6, 1)),
    ((4, 6), (4, 2, 3), (6, 3, 1)),
    ((4, 6), (4, 5, 2), (6, 1, 1)),  # windows of each row
    ((4, 6), (3, 12), (6, 1)),  # windows over rows
    ((4, 6), (2, 6), (12, 1)),  # every second row
    ((4, 6), (4, 1, 6), (6, 99, 1)),
    ((4, 6), (2, 4, 6), (0, 6, 1)),  # broadcast
    ((2, 4, 6), (2, 6, 4), (24, 1, 6)),
]


@pytest.mark.parametrize(("shape", "size", "stride"), STRIDED)
def test_a_slice_of_a_strided_view_lies_in_one_slice_of_its_source(shape, size, stride):
    x = torch.arange(24 * (2 if len(shape) == 3 else 1)).reshape(shape)
    args = {"size": list(size), "stride": list(stride), "input_stride": list(x.stride())}
    nest, known = describe(Call("as_strided", (shape,), (size,), args))
    assert known
    out = torch.as_strided(x, size, stride)
    for loop, about in enumerate(nest.loops):
        for part in range(about.size):
            mine = nth(x, nest.inputs[0], loop, part, about.size)
            assert set(nth(out, nest.outputs[0], loop, part, about.size).flatten().tolist()) <= set(
                mine.flatten().tolist()
            )


def nth(tensor, places, loop, part, parts):
    for dim, place in enumerate(places):
        if place == loop:
            tensor = tensor.chunk(parts, dim)[part]
    return tensor


def test_a_strided_view_that_is_a_permutation_or_a_view_splits_as_one():
    def loops(shape, size, stride):
        x = torch.empty(shape)
        args = {"size": list(size), "stride": list(stride), "input_stride": list(x.stride())}
        return len(describe(Call("as_strided", (shape,), (size,), args))[0].loops)

    assert [loops(*case) for case in STRIDED] == [2, 2, 1, 1, 2, 1, 0, 1, 2, 2, 3]


class Tagger(nn.Module):
    def __init__(self, cell, **settings):
        super().__init__()
        self.embed = nn.Embedding(50, 8)
        self.cells = cell(8, 16, 2, batch_first=True, **settings)
        self.head = nn.Linear(16 * (1 + self.cells.bidirectional), 50)

    def forward(self, ids):
        return self.head(self.cells(self.embed(ids))[0])


@pytest.mark.parametrize("cell", [nn.LSTM, nn.GRU, nn.RNN])
@pytest.mark.parametrize("both", [False, True])
def test_a_recurrent_layer_costs_its_products_forward_and_twice_backward(cell, both):
    graph = trace(Tagger(cell, bidirectional=both), torch.zeros(4, 6, dtype=torch.long))
    gates = {nn.LSTM: 4, nn.GRU: 3, nn.RNN: 1}[cell]
    layers = [op for op in graph.ops if op.family == "recurrent"]
    directions = 1 + both
    assert [op.flops_forward for op in layers] == [
        2 * 24 * directions * gates * 16 * (width + 16) for width in (8, 16 * directions)
    ]
    assert all(op.flops_backward == 2 * op.flops_forward for op in layers)
    for op in layers:
        assert [loop.role for loop in op.loops] == ["batch"]
    names = {graph.tensors[x.tensor].name for op in layers for x in op.inputs}
    assert {f"cells.{name}" for name, _ in Tagger(cell, bidirectional=both).cells.named_parameters()} <= names


def test_a_recurrent_layer_costs_what_torchs_counter_says_where_it_sees_inside():
    from torch.utils.flop_counter import FlopCounterMode

    model = Tagger(nn.GRU)
    ids = torch.zeros(4, 6, dtype=torch.long)
    with FlopCounterMode(display=False) as counter:
        model(ids)
    graph = trace(model, ids)
    assert sum(op.flops_forward for op in graph.ops) == counter.get_total_flops()


def test_packed_sequences_cost_their_own_steps_only():
    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = nn.LSTM(8, 16)

        def forward(self, rows):
            packed = nn.utils.rnn.PackedSequence(rows, torch.tensor([3, 2, 1]))
            return self.cells(packed)[0].data

    (op,) = [op for op in trace(Packed(), torch.randn(6, 8)).ops if op.family == "recurrent"]
    assert op.flops_forward == 2 * 6 * 4 * 16 * (8 + 16)
    assert op.loops == ()


@pytest.mark.parametrize(("run", "flops"), [(torch.fft.fft, 4 * 5 * 8 * 3), (torch.fft.rfft, 4 * 5 * 8 * 3 / 2)])
def test_a_fourier_transform_costs_five_n_log_n(run, flops):
    class Spectral(nn.Module):
        def forward(self, x):
            return run(x).abs()

    dtype = torch.complex64 if run is torch.fft.fft else torch.float32
    (op,) = [
        op for op in trace(Spectral(), torch.randn(4, 8, dtype=dtype).requires_grad_()).ops if op.family == "fourier"
    ]
    assert op.flops_forward == flops


def test_a_complex_product_costs_four_real_ones():
    class Product(nn.Module):
        def __init__(self, dtype):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(8, 8, dtype=dtype))

        def forward(self, x):
            return (x.to(self.weight.dtype) @ self.weight).abs()

    flops = {}
    for dtype in (torch.float32, torch.complex64):
        graph = trace(Product(dtype), torch.randn(4, 8))
        flops[dtype] = sum(op.flops_forward for op in graph.ops)
    assert flops[torch.complex64] == 4 * flops[torch.float32]
