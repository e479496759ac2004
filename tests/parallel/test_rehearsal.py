"""Rehearsals: seeded faults are found with rank and line, and sound loops have none."""

import pytest

torch = pytest.importorskip("torch")

from torch import distributed, nn  # noqa: E402 - after the check for torch
from torch.nn.parallel import DistributedDataParallel  # noqa: E402 - after the check for torch

from jupyter_autotrain.errors import PlanError  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel import api  # noqa: E402 - after the check for torch
from jupyter_autotrain.parallel.rehearse.rehearsal import ranks_to_rehearse, rehearse  # noqa: E402 - after the check for torch
from tests.matrices import long_besides  # noqa: E402 - after the check for torch
from tests.parallel import training  # noqa: E402 - after the check for torch

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
