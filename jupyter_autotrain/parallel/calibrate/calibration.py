"""A calibrated place: what was measured there, and the machine that a plan is made for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any, Final

from jupyter_autotrain.agent.json import JsonObject, from_json, to_json
from jupyter_autotrain.core.cluster import ClusterSpec
from jupyter_autotrain.core.cluster_figures import Level
from jupyter_autotrain.core.devices import Device, Link, LinkKind, reserved_of_gpu, reserved_of_host
from jupyter_autotrain.core.table import Table
from jupyter_autotrain.errors import PlanError
from jupyter_autotrain.parallel.calibrate.fitting import Constants, Fit, Sample
from jupyter_autotrain.parallel.cost.model import Settings
from jupyter_autotrain.parallel.cost.roofline import Efficiency, Roofline
from jupyter_autotrain.parallel.cost.states import Assumptions
from jupyter_autotrain.parallel.graph.graph import Family, Op, OpGraph, TensorKind

FORMAT: Final = 2
HOST_BYTES_PER_S: Final = 16e9  # of a GPU's link to the host, which is not measured: PCIe 3
BUCKETS: Final = 2  # into which DDP puts a model's gradients at least: the first is a small one
HEADS: Final = ("ranks", "32 bits", "16 bits", "memory", "link", "latency", "off by")
_COUNTED: Final = re.compile(r"^\s*(?P<count>\d+)\s*[x*]\s*(?P<place>\S+)\s*$")


@dataclass(frozen=True, slots=True)
class Machine:
    """Devices to plan for, the constants of the cost model on them, and those that its kernels were fitted to."""

    cluster: ClusterSpec
    settings: Settings
    constants: Constants


@dataclass(frozen=True, slots=True)
class Calibration:
    """Constants of a place.

    Attributes:
        place: The profile's name.
        device: What the device says of itself: name, memory_bytes, multiprocessors, type, cpus, torch.
        constants: For each number of ranks that was measured, rising.
        made_s: When, in seconds since the epoch.
    """

    place: str
    device: Mapping[str, Any]
    constants: tuple[Constants, ...]
    made_s: float

    @classmethod
    def of(cls, place: str, measured: Mapping[str, Any], made_s: float) -> Calibration:
        """Return the calibration of what `probe` has measured.

        Raises:
            PlanError: Samples are missing.
        """
        device = measured["device"]
        samples = measured["samples"]
        base = Roofline(_device(place, device, 1), _efficiency(device))
        try:
            by_ranks: dict[int, list[Sample]] = {}
            for sample in samples:
                by_ranks.setdefault(int(sample["ranks"]), []).append(sample)
            constants = [Fit(part, base).constants() for _, part in sorted(by_ranks.items())]
            return cls(place, device, tuple(constants), made_s)
        except (ValueError, KeyError, ZeroDivisionError) as fault:
            raise PlanError(
                f"The measurements at {place} cannot be used: {fault!r}.",
                "Samples of products, attention, memory, launches and collectives.",
                f"Measure again: %autotrain calibrate --backend {place}",
            ) from fault

    @property
    def is_gpu(self) -> bool:
        """True where its devices are GPUs."""
        return bool(self.device["type"] != "cpu")

    @property
    def ranks(self) -> int:
        """Ranks that a plan for the place by its name alone has: as many as work at full rate, one per CPU or GPU."""
        most = max(one.ranks for one in self.constants)
        if self.is_gpu:
            return most
        return max(one.ranks for one in self.constants if one.ranks <= max(1.0, self.device["cpus"]))

    def machine(self, ranks: int | None = None) -> Machine:
        """Return the machine with so many ranks; between measured numbers it has the constants of the next larger one.

        Raises:
            PlanError: More than were measured.
        """
        count = self.ranks if ranks is None else ranks
        enough = [one for one in self.constants if one.ranks >= count]
        if not enough or count < 1:
            most = max(one.ranks for one in self.constants)
            raise PlanError(
                f"{self.place} is calibrated for up to {most} ranks, and {count} are asked for.",
                "Ranks share cores, memory and links, so that more of them are slower.",
                f"Measure with more: %autotrain calibrate --backend {self.place} --workers {count}",
            )
        return Machine(self._cluster(enough[0], count), _settings(self.device, enough[0]), enough[0])

    def _cluster(self, constants: Constants, count: int) -> ClusterSpec:
        device = replace(
            _device(self.place, self.device, count),
            matrix_flops_per_s=constants.matrix_flops_per_s,
            matrix32_flops_per_s=constants.matrix32_flops_per_s,
            memory_bytes_per_s=constants.memory_bytes_per_s,
        )
        link = Link(LinkKind.SINGLE, device.host_bytes_per_s, 0.0)
        if count > 1:
            link = Link(LinkKind.SWITCH, constants.link_bytes_per_s, constants.latency_s)
        return ClusterSpec(((device, count),), (Level("node", count, link),), f"{count}x{self.place}")

    def __str__(self) -> str:
        rows = list(map(_row, self.constants))
        return f"{self.place}: {self.device['name']}, torch {self.device['torch']}\n{Table(HEADS, rows).text()}"

    def to_json(self) -> JsonObject:
        """Return plain JSON values, which `from_json` reads."""
        saved = to_json(self)
        assert isinstance(saved, Mapping)
        return {"format": FORMAT, **saved}

    @classmethod
    def from_json(cls, saved: JsonObject) -> Calibration:
        """Return a calibration that `to_json` has written.

        Raises:
            ValueError: It is of another format, or damaged.
        """
        if saved.get("format") != FORMAT:
            raise ValueError(f"format {saved.get('format')}")
        return from_json(cls, saved)


def find_machine(text: str) -> Machine | None:
    """Return the calibrated machine that a cluster's text names; None where it is none.

    Raises:
        PlanError: More ranks than were measured.
    """
    found: Machine | None = import_module("jupyter_autotrain").find_machine(text)
    return found


def counted(text: str) -> tuple[str, int | None]:
    """Return the place that a cluster's text names, and the number of ranks: `4xlocal` has both, `local` has none."""
    found = _COUNTED.match(text)
    return (found["place"], int(found["count"])) if found else (text.strip(), None)


def for_graph(settings: Settings, graph: OpGraph) -> Settings:
    """Return the settings of a calibrated machine for a model: what is sent together is no more than the model has.

    Ranks gather layer by layer, and DDP fills its first bucket with little; a latency is paid for each of these.
    """
    held = [t.size_bytes for t in graph.tensors if t.kind is TensorKind.PARAMETER and t.trainable]
    layers = sum(run.count for run in graph.repeated_blocks) + 1
    assumptions = settings.assumptions
    bucket = min(assumptions.bucket_bytes, max(1.0, sum(held) / BUCKETS))
    return replace(
        settings,
        assumptions=replace(assumptions, bucket_bytes=bucket, gather_bytes=max(1.0, sum(held) / layers)),
    )


def weighed(graph: OpGraph, constants: Constants) -> OpGraph:
    """Return a traced model's graph in which a slow kernel moves as many bytes as others move in its time.

    The graph of an earlier plan is so already.
    """
    if any(op.members for op in graph.ops):
        return graph
    return replace(graph, ops=tuple(_weighed(graph, op, constants) for op in graph.ops))


def _weighed(graph: OpGraph, op: Op, constants: Constants) -> Op:
    rate = constants.memory_bytes_per_s
    forward = op.bytes_forward
    backward = op.bytes_backward
    if op.family is Family.ATTENTION:
        width = graph.tensors[op.inputs[0].tensor].shape[-1]
        scores = op.flops_forward / 4 / width
        forward_s, backward_s = constants.scores[op.unfused_extra_bytes > 0]
        forward += scores * forward_s * rate
        backward += scores * backward_s * rate
    elif op.kind in constants.kernels and op.outputs:
        elements = graph.tensors[op.outputs[0].tensor].numel
        forward_s, backward_s = constants.kernels[op.kind]
        forward = max(forward, elements * forward_s * rate)
        backward = max(backward, elements * backward_s * rate) if backward else 0.0
    return replace(op, bytes_forward=forward, bytes_backward=backward)


def _row(one: Constants) -> tuple[str, ...]:
    link = ("-", "-")
    if one.ranks > 1:
        link = (f"{one.link_bytes_per_s / 1e9:.2f} GB/s", f"{one.latency_s * 1e6:.0f} µs")
    rates = (f"{rate / 1e9:.0f} GFLOP/s" for rate in (one.matrix32_flops_per_s, one.matrix_flops_per_s))
    return str(one.ranks), *rates, f"{one.memory_bytes_per_s / 1e9:.1f} GB/s", *link, f"{one.error:.0%}"


def _device(place: str, facts: Mapping[str, Any], ranks: int) -> Device:
    """Return the device of one of some ranks, with rates still to be filled in."""
    held = int(facts["memory_bytes"])
    multiprocessors = int(facts["multiprocessors"])
    if facts["type"] != "cpu":
        kept = reserved_of_gpu(held)
        return Device(place, 1.0, 1.0, held, 1.0, HOST_BYTES_PER_S, "", True, multiprocessors, kept)
    share = held // ranks
    return Device(place, 1.0, 1.0, share, 1.0, HOST_BYTES_PER_S, "", False, 1, reserved_of_host(share))


def _efficiency(facts: Mapping[str, Any]) -> Efficiency:
    """Return efficiencies of which nothing is measured yet; a CPU computes no tiles."""
    whole = Efficiency(matrix=1.0, memory=1.0, ramp_flops=0.0)
    return whole if facts["type"] != "cpu" else replace(whole, tile=0)


def _settings(facts: Mapping[str, Any], constants: Constants) -> Settings:
    efficiency = replace(
        _efficiency(facts),
        ramp_flops=constants.ramp_flops,
        launch_s=constants.launch_s,
        attention=constants.attention,
        update=constants.update,
        update_launch_s=constants.update_launch_s,
    )
    assumptions = Assumptions(
        overlap_slowdown=constants.overlap_slowdown,
        scatter=constants.scatter,
        sharing=constants.sharing,
        replicating=constants.replicating,
        moving=constants.moving,
        shared_update_s=constants.shared_update_s,
    )
    return Settings(efficiency, assumptions)
