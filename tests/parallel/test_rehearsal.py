"""Rehearsals: seeded faults are found with rank and line, and sound loops have none."""

import pytest

torch = pytest.importorskip("torch")

from torch import distributed, nn  # noqa: E402 - after the check for torch
from torch.nn.parallel import DistributedDataParallel  # noqa: E402 - after the check for torch

from jupyter_autotrain.errors import PlanError  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel import api  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.rehearse.rehearsal import ranks_to_rehearse, rehearse  # noqa: E402 - after the check for torch
from tests.matrices import long_besides  # noqa: E402 - after the check for torch
from tests.parallel import planning, training  # noqa: E402 - after the check for torch

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own, of hooks on wrapped modules
RANKS = 4
BATCH = 12


def loop(part=None, between=lambda rank: None, reduced=lambda loss, rank: distributed.all_reduce(loss)):
    """Train as people write it for DDP, with places for faults."""
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    ranks = distributed.get_world_size()
    net = DistributedDataParallel(nn.Linear(4, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    samples = torch.randn(BATCH, 4)
    for _ in range(3):
        mine = samples[rank * BATCH // ranks : (rank + 1) * BATCH // ranks] if part is None else part(samples, rank)
        optimizer.zero_grad()
        loss = net(mine).mean()
        loss.backward()
        optimizer.step()
        reduced(loss.detach(), rank)
        between(rank)
    distributed.destroy_process_group()


def test_a_sound_loop_has_no_fault_and_tells_what_ranks_hold():
    found = rehearse(loop, RANKS)
    assert (found.faults, found.uneven) == ((), ())
    assert found.rehearsed == (0, 1, 2, 3)
    assert set(found.peak_bytes) == {0, 1, 2, 3}
    assert str(found).startswith("Rehearsed ranks 0, 1, 2, 3 of 4: no fault.\n  memory  at most ")
    found.check()
    assert not distributed.is_initialized()


def test_a_wrong_divisor_leaves_the_last_rank_without_samples():
    def part(samples, rank):
        return samples.chunk(RANKS - 1)[rank]

    (fault,) = rehearse(lambda: loop(part), RANKS).faults
    assert fault.startswith("Rank 3 fails at test_rehearsal.py line ")
    assert fault.endswith("rank 0 does not: IndexError: tuple index out of range")


def test_parts_that_are_not_equal_are_told():
    def part(samples, rank):
        return samples.tensor_split(5)[rank]

    found = rehearse(lambda: loop(part), RANKS)
    assert found.uneven == ("Call 1 of the model gets (3, 4) on rank 0 and (2, 4) on rank 2.",)
    assert found.faults == ()


def test_a_collective_of_rank_0_alone_is_found_with_its_line():
    def between(rank):
        if rank == 0:
            distributed.barrier()

    (fault,) = rehearse(lambda: loop(between=between), RANKS).faults
    assert fault.startswith("Rank 0 does barrier")
    assert "at test_rehearsal.py line" in fault
    assert fault.endswith("they would wait for ever.")


def test_a_rank_that_stops_earlier_is_found():
    def between(rank):
        if rank == 2:
            raise StopIteration

    (fault,) = rehearse(lambda: loop(between=between), RANKS).faults
    assert fault.startswith("Rank 2 fails at")


def test_ranks_that_exchange_other_shapes_are_found():
    def reduced(loss, rank):
        distributed.all_reduce(loss if rank else loss.expand(2).clone())

    (fault,) = rehearse(lambda: loop(reduced=reduced), RANKS).faults
    assert fault.startswith("Rank 0 does allreduce of [2] float32")
    assert "rank 1 does allreduce of [] float32" in fault


def test_an_error_of_every_rank_is_one_fault_and_check_refuses_it():
    found = rehearse(lambda: loop(lambda samples, rank: samples[:, :3]), RANKS)
    (fault,) = found.faults
    assert fault.startswith("Every rank fails at test_rehearsal.py line")
    with pytest.raises(PlanError, match="Every rank fails"):
        found.check()


def test_a_loop_that_never_steps_is_told():
    assert rehearse(lambda: None, 2).faults == ("The loop ends without a step of an optimizer.",)


def test_of_many_ranks_the_ends_and_the_middle_run():
    assert ranks_to_rehearse(1024) == (0, 1, 512, 1023)


@pytest.mark.parametrize("zero", [0, 3], ids=["DDP", "FSDP"])
@pytest.mark.parametrize("model", long_besides(["mlp", "gpt2"], list(training.MODELS)))
def test_plans_of_the_models_have_no_fault_on_64_devices(model, zero):
    found = planned(model, "8x8xA100", pins={"zero": zero}, mode="data_parallel")
    assert (found.ranks, found.faults, found.uneven) == (64, (), ())


@pytest.mark.parametrize("row", long_besides(["tensor"], ["tensor", "FSDP, tensor"]))
def test_ranks_that_share_layers_have_no_fault(row):
    found = planned("gpt2", "2x4xA100", pins=planning.TENSOR_ROWS[row])
    assert (found.ranks, found.faults, found.uneven) == (8, (), ())


@pytest.mark.long
@pytest.mark.parametrize("devices", ["8x8xA100", "32x8xA100", "128x8xA100"])
def test_answers_for_up_to_1024_devices_have_no_fault(devices):
    found = planned("gpt2", devices, mode="data_parallel")
    assert (found.faults, found.uneven) == ((), ())


def planned(model, devices, **words):
    ranks = api.ClusterSpec.parse(devices).devices
    batch = next(iter(torch.utils.data.DataLoader(training.Samples(model, ranks), batch_size=ranks)))
    plan = api.plan(training.MODELS[model](), batch, devices, search="recursive_programming", **words)

    def train():
        net = training.MODELS[model]().train()
        optimizer = torch.optim.AdamW(net.parameters())
        net, optimizer, loader = plan.apply(net, optimizer, [batch] * 3)
        for part in loader:
            optimizer.zero_grad()
            training.loss_of(net, part).backward()
            optimizer.step()

    return plan.rehearse(train, ranks=(0, ranks - 1))


DEEP = "llama of 4 layers"


def staged(row, model=DEEP, batches=lambda batch, rank: batch, before=lambda net, rank: None, chosen=()):
    """Return the rehearsal of steps by whole batches, with places for faults."""
    plan = planning.staged(model, row)

    def train():
        rank = distributed.get_rank()
        net = training.network(model).train()
        training_steps = plan.parallelize(net, optimizer=torch.optim.AdamW(net.parameters()))
        before(net, rank)
        for _ in range(3):
            training_steps.step(batches(training.example(model), rank))

    return plan.rehearse(train, ranks=chosen)


CASES = [(model, row) for model in training.DEEP_MODELS for row in planning.STAGED_ROWS]
DEFAULT = [
    (DEEP, "1F1B, FSDP"),
    ("gpt2 of 4 layers", "interleaved"),
]


@pytest.mark.parametrize("case", long_besides(DEFAULT, CASES), ids=lambda case: "{}-{}".format(*case))
def test_sound_stages_have_no_fault(case):
    model, row = case
    planning.skip_beyond(model, row)
    found = staged(row, model)
    assert (found.faults, found.uneven) == ((), ())
    assert found.rehearsed == tuple(range(planning.ranks_of(row)))
    assert set(found.peak_bytes) == set(found.rehearsed)


def test_stages_that_share_layers_beside_a_data_axis_have_no_fault():
    found = staged("1F1B, FSDP, tensor and sequence", "gpt2 of 4 layers", chosen=(4, 6))
    assert (found.ranks, found.faults, found.uneven) == (8, (), ())


def test_a_stage_that_is_sent_another_form_than_it_waits_for_is_found():
    def shorter(batch, rank):
        return batch if rank else {name: value[:, :6] for name, value in batch.items()}

    (fault,) = staged("1F1B", batches=shorter).faults
    assert fault.startswith("Rank 0 does send of [4, 6, 32] float32 to rank 1 at test_rehearsal.py line")
    assert "while rank 1 does recv of [4, 8, 32] float32 from rank 0" in fault


def test_a_stage_whose_layer_fails_is_named():
    def fail(net, rank):
        if rank == 1:
            net.model.layers[3].mlp.down_proj = nn.Linear(8, 32)

    (fault,) = staged("1F1B", before=fail).faults
    assert fault.startswith("Rank 1 fails at test_rehearsal.py line")


def test_a_collective_of_one_stage_alone_is_found():
    def between(_net, rank):
        if rank == 1:
            distributed.barrier()

    (fault,) = staged("1F1B", before=between).faults
    assert "ank 1 does barrier" in fault


@pytest.mark.parametrize("devices", long_besides(["8x8xA100"], ["8x8xA100", "128x8xA100"]))
def test_stages_have_no_fault_on_many_devices(devices):
    ranks = api.ClusterSpec.parse(devices).devices
    batch = training.example(DEEP)
    batch = {name: value.repeat(ranks // 16, 1) for name, value in batch.items()}
    degrees = planning.Stages(pipeline=4, data=ranks // 4, microbatches=4, zero=3)
    net = training.network(DEEP)
    plan = api.plan(net, batch, devices, search="recursive_programming", pins=degrees)

    def train():
        net = training.network(DEEP).train()
        steps = plan.parallelize(net, optimizer=torch.optim.AdamW(net.parameters()))
        for _ in range(3):
            steps.step(batch)

    found = plan.rehearse(train)
    assert (found.ranks, found.faults, found.uneven) == (ranks, (), ())
