"""Trials on several nodes start on all of them or on none."""

from __future__ import annotations

from dataclasses import replace

from jupyter_autotrain.backends.kubernetes.following import gangs
from jupyter_autotrain.backends.kubernetes.following.gangs import Action, Gang, GangGate
from jupyter_autotrain.backends.kubernetes.workloads import manifests


def in_time(home: list[Gang], timeout_s: float) -> list[Gang]:
    return [replace(gang, timeout_s=timeout_s) for gang in home]


class World:
    """A cluster of a few slots, gangs of several homes, and a clock; pods are placed greedily, one by one."""

    def __init__(self, slots: int, *homes: list[Gang], timeout_s: float = 300.0) -> None:
        self.now_s = 0.0
        self.slots = slots
        self.homes = [in_time(home, timeout_s) for home in homes]
        self.gates = [GangGate(lambda: self.now_s) for _ in homes]
        self.given_up: dict[str, str] = {}
        self.done: list[str] = []

    def tick(self, seconds: float = 5.0) -> None:
        """Each manager looks and acts, then the scheduler does, a pod of each gang in turn."""
        self.now_s += seconds
        for home, gate in zip(self.homes, self.gates, strict=True):
            for step in gate.decide(home):
                self._do(home, step)
        while self._place_one_each():
            pass
        for home in self.homes:
            home[:] = [self._told(gang) for gang in home]

    def _do(self, home: list[Gang], step: gangs.Step) -> None:
        (index,) = [index for index, gang in enumerate(home) if gang.name == step.name]
        if step.action is Action.GIVE_UP:
            self.given_up[step.name] = step.reason
            del home[index]
        else:
            home[index] = replace(home[index], is_suspended=step.action is Action.SUSPEND, placed=0, stuck="")

    def _place_one_each(self) -> bool:
        is_placed = False
        for home in self.homes:
            for index, gang in enumerate(home):
                if gang.is_starting and self.free > 0:
                    home[index] = replace(gang, placed=gang.placed + 1)
                    is_placed = True
        return is_placed

    def _told(self, gang: Gang) -> Gang:
        return replace(gang, stuck="waits: 0/2 nodes are free" if gang.is_starting else "")

    @property
    def free(self) -> int:
        return self.slots - sum(gang.placed for home in self.homes for gang in home)

    def running(self) -> list[str]:
        return [gang.name for home in self.homes for gang in home if not gang.is_suspended and not gang.is_starting]

    def end(self, name: str) -> None:
        for home in self.homes:
            home[:] = [gang for gang in home if gang.name != name]
        self.done.append(name)


def gang(name: str, nodes: int = 2, **state: object) -> Gang:
    return Gang(name, f"2026-01-01T00:00:0{name[-1]}Z", nodes, 0, **{"is_suspended": True, **state})


def test_of_two_gangs_of_one_home_one_starts_and_then_the_other_and_nothing_is_held_in_part() -> None:
    world = World(2, [gang("a1"), gang("a2")])
    for _ in range(10):
        world.tick()
        assert all(one.placed in {0, 2} for one in world.homes[0])
    assert world.running() == ["a1"]
    world.end("a1")
    world.tick()
    assert world.running() == ["a2"]
    assert not world.given_up


def test_a_gang_that_waits_for_one_of_its_own_home_never_gives_up_and_holds_no_node_for_long() -> None:
    world = World(3, [gang("a1"), gang("a2")], timeout_s=60.0)
    held = []
    for _ in range(200):
        world.tick()
        held.append(world.homes[0][1].placed)
    assert not world.given_up
    assert world.running() == ["a1"]
    assert 0 < sum(held) < len(held) * 0.8
    world.end("a1")
    world.tick()
    assert world.running() == ["a2"]


def test_the_time_that_one_of_its_own_home_ran_does_not_count_when_that_ends() -> None:
    world = World(2, [gang("a1"), gang("a2")], timeout_s=60.0)
    for _ in range(100):
        world.tick()
    world.end("a1")
    stuck = [replace(one, stuck="waits: the scheduler has not looked again") for one in world.homes[0]]
    assert world.gates[0].decide(stuck) == []


def test_gangs_of_two_homes_that_hold_each_other_up_give_way_until_both_have_run() -> None:
    world = World(2, [gang("a1")], [gang("b2")])
    world.tick()
    assert world.running() == []  # each has one node, and neither could start
    assert world.free == 0
    for _ in range(200):
        world.tick()
        for name in world.running():
            world.end(name)
        if len(world.done) == 2:
            break
    assert sorted(world.done) == ["a1", "b2"]
    assert not world.given_up


def test_a_gang_that_never_fits_gives_up_with_a_message_that_names_what_to_do_and_frees_its_nodes() -> None:
    world = World(2, [gang("a1", nodes=3), gang("a2")], timeout_s=120.0)
    for _ in range(100):
        world.tick()
        for name in world.running():
            world.end(name)
    assert "3 nodes at the same time within 120 s" in world.given_up["a1"]
    assert "2 of its pods had one, another waits: 0/2 nodes are free" in world.given_up["a1"]
    assert "start_timeout" in world.given_up["a1"]
    assert world.done == ["a2"]
    assert world.free == 2


def test_gangs_that_fit_together_run_together() -> None:
    world = World(4, [gang("a1"), gang("a2")])
    for _ in range(3):
        world.tick()
    assert world.running() == ["a1", "a2"]


def test_pods_that_have_not_been_judged_by_the_scheduler_yet_are_waited_for() -> None:
    starting = gang("a1", is_suspended=False)
    gate = GangGate(clock=iter([0.0, 1000.0]).__next__)
    assert gate.decide([starting]) == []
    assert gate.decide([starting]) == []


def job(**labels: str) -> dict:
    return {"kind": "Job", "metadata": {"name": "j", "labels": labels}, "spec": {"parallelism": 2}}


def test_a_trial_on_several_nodes_is_made_suspended_and_found_again() -> None:
    made = manifests.as_gang(job(), 2)
    assert made["spec"] == {"parallelism": 2, "suspend": True}
    found = gangs.gang_of({**made, "metadata": {**made["metadata"], "creationTimestamp": "t"}}, [])
    assert found == Gang("j", "t", 2, 0, is_suspended=True)
    assert gangs.gang_of(job(), []) is None


def test_what_has_one_node_and_kinds_of_operators_with_queues_of_their_own_are_left_as_they_are() -> None:
    assert manifests.as_gang(job(), 1) == job()
    for kind in ("Framework", "PyTorchJob", "TrainJob"):
        other = {**job(), "kind": kind}
        assert manifests.as_gang(other, 2) is other


def test_pods_with_a_node_and_what_the_scheduler_says_are_counted() -> None:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/2 nodes: no room."}
    pods = [
        {"spec": {"nodeName": "n1"}, "status": {"phase": "Running"}},
        {"spec": {}, "status": {"phase": "Pending", "conditions": [condition]}},
    ]
    made = manifests.as_gang(job(), 2)
    found = gangs.gang_of({**made, "spec": {"suspend": False}}, pods)
    assert found is not None
    assert (found.placed, found.is_starting) == (1, True)
    assert "no room" in found.stuck
