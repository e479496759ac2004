"""Constants that are fitted to samples, and the machines that they make."""

import dataclasses
import json
import math
import random

import pytest

from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.calibrate.calibration import Calibration, counted, for_graph, weighed
from jupyter_autotrain.parallel.calibrate.fitting import ADAM_BYTES
from jupyter_autotrain.parallel.graph.prepare import prepare
from tests.example_graphs import gpt

LAUNCH_S = 5e-6
RATE32 = 80e9
RATE16 = 20e9
MEMORY = 10e9
LATENCY_S = 2e-4
LINK = 1.5e9
UPDATE = 0.4
UPDATE_LAUNCH_S = 5e-5
ATTENTION = 0.5
SLOWDOWN = 0.3
SCATTER = 2.0
START_S = 1e-3
COPY_S = 1e-9
PARTED_S = 3e-4
GELU = (7e-9, 1e-9)
SCORE_S = 2e-8


def samples(ranks, noise=0.0, seed=0):
    """Return what a place with known constants gives, each figure off by up to a share."""
    drawn = random.Random(seed)

    def sample(kind, seconds, **facts):
        return {"kind": kind, "ranks": ranks, "seconds": seconds * (1 + drawn.uniform(-noise, noise)), **facts}

    found = [sample("launch", 60 * LAUNCH_S, kernels=60)]
    for flops in (1e6, 1e7, 1e8, 1e9):
        for dtype, rate in (("float32", RATE32), ("bfloat16", RATE16)):
            found.append(sample("matmul", flops / rate + LAUNCH_S, dtype=dtype, flops=flops, elements=1000))
        found += attention(sample, flops)
        found.append(sample("stream", flops / MEMORY + LAUNCH_S, bytes=flops))
    for weights, elements in ((1, 1e6), (4, 1e6), (50, 1e3)):
        update_s = ADAM_BYTES * elements / MEMORY / UPDATE + weights * UPDATE_LAUNCH_S
        found.append(sample("update", update_s, weights=weights, elements=elements, shared=False))
    for side, s_per_element in zip(("forward", "backward"), GELU, strict=True):
        seconds = 1e6 * s_per_element + LAUNCH_S
        found.append(sample("kernel", seconds, op="gelu", side=side, elements=1e6))
    return found + (exchanged(sample, ranks) if ranks > 1 else [])


def attention(sample, flops):
    """With 64 features, and a time of each score that dropout adds."""
    for side, factor in (("forward", 1.0), ("backward", 2.5)):
        for dropout in (0.0, 0.1):
            seconds = factor * flops / RATE32 / ATTENTION + LAUNCH_S + flops / 256 * (SCORE_S if dropout else 0.0)
            yield sample("attention", seconds, flops=flops, elements=flops / 256, side=side, dropout=dropout)


def exchanged(sample, ranks):
    def gather_s(size):
        return math.log2(ranks) * LATENCY_S + (ranks - 1) / ranks * size / LINK

    found = []
    for kind, gathers in (("all_reduce", 2), ("all_gather", 1), ("reduce_scatter", SCATTER)):
        found += [sample(kind, gathers * gather_s(size), bytes=size) for size in (1e4, 1e6, 1e7)]
    for size in (1e4, 1e6, 1e7):
        beside_s = START_S + size * COPY_S
        layer = {"layers": 1, "bytes": size}
        found.append(sample("spread", 1e-3, how="whole", **layer))
        found.append(sample("spread", 1e-3 + 2 * gather_s(size) + beside_s, how="replicated", **layer))
        found.append(sample("spread", 1e-3 + (1 + SCATTER) * gather_s(size) + 2 * beside_s, how="shared", **layer))
        found.append(sample("spread", 1e-3 + (2 + SCATTER) * gather_s(size) + 3 * beside_s, how="reshared", **layer))
        found.append(sample("moved", 1e-3, how="alone", bytes=size))
        found.append(sample("moved", 1e-3 + 2 * gather_s(size) + beside_s, how="summed", bytes=size))
    parted_s = ADAM_BYTES * 1e3 / MEMORY / UPDATE + 10 * (UPDATE_LAUNCH_S + PARTED_S)
    found.append(sample("update", parted_s, weights=10, elements=1e3, shared=True))
    for part, seconds in (("compute", 1.0), ("communication", 0.5), ("both", 1.0 + 0.5 * SLOWDOWN)):
        found.append(sample("overlap", seconds, part=part))
    return found


def calibration(noise=0.0, cpus=2.0, counts=(1, 2, 4)):
    device = {"name": "CPU", "type": "cpu", "memory_bytes": 8 << 30, "multiprocessors": 1, "cpus": cpus, "torch": "2"}
    found = [sample for count in counts for sample in samples(count, noise, seed=count)]
    return Calibration.of("lab", {"device": device, "samples": found}, 1.0)


EXPECTED = {
    "matrix_flops_per_s": RATE16,
    "matrix32_flops_per_s": RATE32,
    "memory_bytes_per_s": MEMORY,
    "attention": ATTENTION,
    "update": UPDATE,
    "update_launch_s": UPDATE_LAUNCH_S,
    "link_bytes_per_s": LINK,
    "latency_s": LATENCY_S,
    "overlap_slowdown": SLOWDOWN,
    "scatter": SCATTER,
    "shared_update_s": PARTED_S,
}


@pytest.mark.parametrize(("noise", "off"), [(0.0, 1e-6), (0.05, 0.12)])
def test_known_constants_are_found_again(noise, off):
    for constants in calibration(noise).constants[1:]:
        within = {name: pytest.approx(value, rel=off) for name, value in EXPECTED.items() if name != "overlap_slowdown"}
        assert {name: getattr(constants, name) for name in within} == within
        assert constants.overlap_slowdown == pytest.approx(SLOWDOWN, abs=max(1e-6, 4 * noise))
        assert constants.error <= max(1e-6, noise)


def test_what_surrounds_collectives_and_what_slow_kernels_take_is_found_again():
    for constants in calibration().constants[1:]:
        for beside in (constants.sharing, constants.replicating, constants.moving):
            assert (beside.start_s, beside.s_per_byte) == (pytest.approx(START_S), pytest.approx(COPY_S))
        assert constants.kernels == {"gelu": pytest.approx(GELU)}
        without, dropped = constants.scores
        assert without == pytest.approx((0.0, 0.0), abs=1e-10)
        assert dropped == pytest.approx((SCORE_S, SCORE_S), rel=0.01)


def test_a_slow_kernel_counts_as_many_bytes_as_are_moved_in_its_time():
    graph = gpt(batch=8, width=64, layers=2, heads=4, sequence=32, vocabulary=128)
    constants = calibration().constants[1]
    for op, heavier in zip(graph.ops, weighed(graph, constants).ops, strict=True):
        elements = graph.tensors[op.outputs[0].tensor].numel
        expected = op.bytes_forward
        if op.kind == "gelu":
            expected = elements * GELU[0] * MEMORY
        assert heavier.bytes_forward == pytest.approx(expected)


def test_a_sample_that_another_program_disturbed_does_not_move_the_rate():
    found = samples(1)
    disturbed = next(sample for sample in found if sample["kind"] == "stream")
    disturbed["seconds"] *= 20
    device = {"name": "CPU", "type": "cpu", "memory_bytes": 8 << 30, "multiprocessors": 1, "cpus": 1, "torch": "2"}
    (one,) = Calibration.of("lab", {"device": device, "samples": found}, 1.0).constants
    assert one.memory_bytes_per_s == pytest.approx(MEMORY, rel=0.15)


def test_a_place_by_its_name_alone_has_a_rank_per_cpu():
    found = calibration(cpus=2.0)
    assert str(found.machine().cluster) == "2xlab"
    assert found.machine(3).cluster.devices == 3
    assert found.machine(3).cluster.device.memory_bytes == (8 << 30) // 3


def test_more_ranks_than_were_measured_are_refused_with_the_command():
    with pytest.raises(PlanError, match="--backend lab --workers 8"):
        calibration().machine(8)


def test_a_calibration_is_the_same_after_it_was_saved():
    found = calibration()
    assert Calibration.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_missing_samples_are_told():
    device = {"name": "CPU", "type": "cpu", "memory_bytes": 8 << 30, "multiprocessors": 1, "cpus": 1, "torch": "2"}
    with pytest.raises(PlanError, match="cannot be used"):
        Calibration.of("lab", {"device": device, "samples": samples(1)[:3]}, 1.0)


def test_a_small_model_pays_a_latency_for_each_layer_and_for_two_buckets():
    graph = prepare(gpt(batch=8, width=64, layers=4, heads=4, sequence=32, vocabulary=128))
    settings = for_graph(calibration().machine().settings, graph)
    held = sum(t.size_bytes for t in graph.tensors if t.trainable)
    assert settings.assumptions.gather_bytes == pytest.approx(held / 5)
    assert settings.assumptions.bucket_bytes == pytest.approx(held / 2)
    assert dataclasses.replace(settings.assumptions, gather_bytes=0.0) != settings.assumptions


@pytest.mark.parametrize(
    ("text", "found"), [("local", ("local", None)), ("4xlocal", ("local", 4)), (" 2 x my-lab ", ("my-lab", 2))]
)
def test_a_place_may_have_a_number_of_ranks(text, found):
    assert counted(text) == found
