"""`plan`: from a model and a cluster to the best split, in one call."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, replace
from enum import StrEnum
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from jupyter_autotrain.agent.json import JsonObject, from_json
from jupyter_autotrain.core.cluster import ClusterSpec, find_named
from jupyter_autotrain.core.cluster_figures import memory_of
from jupyter_autotrain.core.measurement import ENOUGH, Accuracy, accuracy, find_measurements
from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.errors import InfeasibleError, MissingExtraError, PlanError, TraceError
from jupyter_autotrain.parallel.calibrate.calibration import find_machine, for_graph, weighed
from jupyter_autotrain.parallel.choices import beyond
from jupyter_autotrain.parallel.cost.memory import ZeroLevel
from jupyter_autotrain.parallel.cost.model import Settings
from jupyter_autotrain.parallel.graph.check import check
from jupyter_autotrain.parallel.graph.graph import OpGraph
from jupyter_autotrain.parallel.graph.prepare import PreparedGraph, prepare
from jupyter_autotrain.parallel.plan import Degrees, Plan, PlanImporter
from jupyter_autotrain.parallel.search import (
    PROOF_S,
    SHARE_PUBLISHED,
    Method,
    Mode,
    Pins,
    SearchLimits,
    SearchRequest,
    Solution,
    StrategySpace,
    default_share,
    retry_on_interrupt,
    solve,
)
from jupyter_autotrain.parallel.search.outer.progress import progress_on
from jupyter_autotrain.parallel.search.request.request import batch_size

if TYPE_CHECKING:
    import torch

E = TypeVar("E", bound=StrEnum)
PinSource: TypeAlias = Pins | PlanImporter | Mapping[str, Any] | None
TIME_LIMIT_S = 60.0


def plan(  # noqa: PLR0913, PLR0917 - the one call of a notebook; each part of the request is a parameter
    model: torch.nn.Module | OpGraph,
    example_inputs: object = None,
    cluster: str | JsonObject | ClusterSpec = "8xH100",
    mode: str = "auto_parallel",
    search: str = "dynamic_programming",
    memory_limit: str | float | None = None,
    loss_fn: Callable[[Any], torch.Tensor] | None = None,
    *,
    mesh: Mapping[str, int] | None = None,
    pins: PinSource = None,
    space: StrategySpace | None = None,
    offload: bool = False,
    simplicity: float | None = None,
    execute: bool = True,
    time_limit_s: float = TIME_LIMIT_S,
    proof_s: float | None = PROOF_S,
) -> Plan:
    """Find the split of a model over a cluster with the least step time that fits in memory.

    Nothing is computed and no device is needed: the model may live on the meta device, the cluster in a data sheet.
    An interrupt, or the end of the time limit, gives the best plan so far with its gap. A search of more than two
    seconds shows on a terminal and in a notebook how far it is.

    Args:
        model: A module, or a graph that was traced or built before.
        example_inputs: A tensor, a tuple of arguments, or a mapping of keyword arguments; their batch is planned for.
        cluster: `"8xH100"`, `"2x8xA100-80GB"`, `"pod(32x8xNNP-T1000, ring)"`, `"8xH100+8xA100"`, a mapping, or the name
            of a backend, whose devices are meant; where it was measured (`calibrate`), also with a number of ranks, as
            `4xlocal`.
        mode: `auto_parallel`, `hybrid_parallel` (pins are kept, the rest is searched), `data_parallel`, `stand_alone`.
        search: `dynamic_programming` (proved), `recursive_programming` (instant), `exhaustive` (tiny graphs).
        memory_limit: Most memory per device (`"80GB"`); the device's own unless given.
        loss_fn: Makes the loss from what the model returns; not needed where the model returns it.
        mesh: The degrees, searched unless given: `{"data": 2, "expert": 2}`, or short `dp`, `tp`, `pp`, `ep`; what is
            left out is 1.
        pins: What is fixed: `Pins`, a mapping with its fields, or a plan from elsewhere (`Megatron`, `MindSpore`).
        space: Where to search.
        offload: Whether optimizer states, and embedding tables with them, may also live in the host's memory.
        simplicity: The answer is the simplest plan whose step takes at most this share longer than that of the best,
            which is told beside it; 0: the best itself. Unless given, what the cost model cannot tell apart: 0.03 on
            devices whose published step times it meets, or on which the last plans that ran were predicted so well,
            0.05 on others.
        execute: Whether to search among plans that `Plan.apply` runs. Only where none of them fits, or pins ask for
            another, the answer is one that is exported only, and says so. False: among all plans.
        time_limit_s: Most seconds for the search.
        proof_s: How long to go on with meshes of three axes once all of two, and finer ones of the best, are searched;
            None: until the gap is as small as it gets. Seldom a better plan comes of it.

    Raises:
        TraceError: The model cannot be captured; names its line.
        InfeasibleError: No split fits, with the least memory that would do.
        PlanError: Unknown device, mode or solver, pins that contradict something, a batch that cannot be divided, a
            graph with a cycle.
        MissingExtraError: torch is not installed and `model` is no graph.
    """
    calibrated = find_machine(cluster) if isinstance(cluster, str) else None
    machine = calibrated.cluster if calibrated else _machine(cluster)
    plan_mode = _member(Mode, mode, "mode")
    solver = _member(Method, search, "search")
    limits = SearchLimits(None if memory_limit is None else memory_of(memory_limit), time_limit_s, proof_s)
    traced, trace_s = _traced(model, example_inputs, loss_fn)
    if calibrated:
        traced = weighed(traced, calibrated.constants)
    graph, _ = retry_on_interrupt(lambda: prepare(traced))
    fixed = _fixed(mesh, pins)
    pinned = _pins(fixed, traced, graph, machine)
    if pinned != Pins() and plan_mode is Mode.AUTO_PARALLEL:
        plan_mode = Mode.HYBRID_PARALLEL
    if plan_mode is Mode.DATA_PARALLEL:
        _check_batch(graph, machine)
    searched = space or StrategySpace()
    searched = replace(searched, offload=offload or searched.offload)
    kinds = {device.name for device, _ in machine.kinds}
    known = accuracy(find_measurements(kinds), graph.name)
    share = _error(kinds, known) if simplicity is None else simplicity
    priced = for_graph(calibrated.settings, graph) if calibrated else Settings()
    parts = (plan_mode, solver, limits, pinned, searched, priced)
    request = SearchRequest(*parts, simplicity=_checked_share(share), execute=execute)
    with progress_on(sys.stdout) as tell:
        solution = solve(graph, machine, request, tell=tell)
    if isinstance(fixed, Degrees) and execute:
        solution = _at_one_level(graph, request, solution)
    return Plan.of(request, solution, trace_s, known)


def _at_one_level(graph: PreparedGraph, request: SearchRequest, found: Solution) -> Solution:
    """Return the fastest plan of these degrees with one level of ZeRO for all weights, as runs; else what was found."""
    if not beyond(found.graph, found.decision):
        return found
    running: list[Solution] = []
    for level in ZeroLevel:
        try:
            solution = solve(graph, found.cluster, replace(request, pins=replace(request.pins, zero=level)))
        except InfeasibleError:
            continue
        if not beyond(solution.graph, solution.decision):
            running.append(solution)
    return min(running, key=lambda each: (each.cost.step_s, each.cost.peak_memory_bytes), default=found)


def _machine(cluster: str | JsonObject | ClusterSpec) -> ClusterSpec:
    named = find_named(cluster) if isinstance(cluster, str) else None
    return named or ClusterSpec.parse(cluster)


def _traced(model: Any, example_inputs: object, loss_fn: Callable[[Any], Any] | None) -> tuple[OpGraph, float]:  # noqa: ANN401 - see `plan`
    """Return the model's graph and the seconds it took; a graph is only checked."""
    if isinstance(model, OpGraph):
        return check(model), 0.0
    is_class = isinstance(model, type)
    if is_class or not callable(getattr(model, "named_parameters", None)):
        found = f"the class {model.__name__}" if is_class else f"a {type(model).__name__}"
        raise PlanError(
            f"There is {found} where a model was expected.",
            "A torch module, or an OpGraph.",
            "Give the model itself, not its class, its output or its configuration.",
        )
    if example_inputs is None:
        raise PlanError(
            "There are no example inputs.",
            "A tensor, a tuple of arguments, or a mapping of keyword arguments, with the batch to plan for.",
            "Give inputs that the model can be called with; on the meta device they cost nothing.",
        )
    try:
        tracing = import_module("jupyter_autotrain.parallel.trace")
    except ModuleNotFoundError as missing:
        if missing.name != "torch":
            raise
        raise MissingExtraError("torch", "parallel", "Tracing a model") from None
    began = time.monotonic()
    try:
        graph: OpGraph = tracing.trace(model, example_inputs, loss_fn=loss_fn)
    except KeyboardInterrupt:
        raise TraceError(
            f"The model was still being traced when the interrupt came, after {time.monotonic() - began:.1f} s.",
            "A plan needs the whole graph; the search that follows can be interrupted and gives the best so far.",
            "Trace again, with a smaller batch or fewer layers if that takes too long.",
        ) from None
    return graph, time.monotonic() - began


def _fixed(mesh: Mapping[str, int] | None, pins: PinSource) -> PinSource:
    """Return what is fixed: by the degrees of a mesh, or by pins."""
    if mesh is None:
        return pins
    if pins is not None:
        raise PlanError(
            f"There are both mesh={dict(mesh)!r} and pins.",
            "One of the two: a mesh fixes the degrees, pins whatever they name.",
            "Leave one out; pins=Megatron(...) takes degrees beside ZeRO level, recompute and microbatches.",
        )
    return Degrees.named(mesh)


def _pins(given: PinSource, traced: OpGraph, graph: OpGraph, cluster: ClusterSpec) -> Pins:
    if given is None or isinstance(given, Pins):
        return given or Pins()
    if not isinstance(given, Mapping):
        return given.pins(traced, graph, cluster)
    known = [f.name for f in fields(Pins)]
    unknown = [key for key in given if key not in known]
    if unknown:
        near = closest_match(unknown[0], known, cutoff=0.0)
        raise PlanError(
            f"Unknown pin {unknown[0]!r}.",
            f"Known: {', '.join(known)}; the nearest is {near!r}.",
            "Correct or drop it.",
        )
    try:
        return from_json(Pins, given)
    except (ValueError, TypeError) as fault:
        raise PlanError(f"The pins cannot be read: {fault}.", "Values as in `Pins`.", "Correct them.") from fault


def _error(devices: Collection[str], known: Accuracy | None) -> float:
    """Return the error of the cost model on some devices: the smaller default where it was measured to hold."""
    holds = known is not None and known.plans >= ENOUGH and known.error <= SHARE_PUBLISHED
    return SHARE_PUBLISHED if holds else default_share(devices)


def _checked_share(share: object) -> float:
    if isinstance(share, int | float) and 0 <= share < 1:
        return float(share)
    raise PlanError(
        f"There is simplicity={share!r}.",
        "A share of the step time: 0 for the best plan, 0.05 for the simplest that is at most 5 % slower.",
        "Give a number from 0 up to 1, or leave it out.",
    )


def _check_batch(graph: OpGraph, cluster: ClusterSpec) -> None:
    batch = batch_size(graph)
    if batch % cluster.devices:
        raise PlanError(
            f"The batch of {batch} cannot be divided by {cluster.devices} devices.",
            "Data parallelism gives every device the same number of samples.",
            f"Use a batch that {cluster.devices} divides, fewer devices, or mode='auto_parallel'.",
        )


def _member(kind: type[E], given: str, what: str) -> E:
    try:
        return kind(given)
    except ValueError:
        known = list(map(str, kind))
        near = closest_match(str(given), known, cutoff=0.0)
        raise PlanError(
            f"Unknown {what} {given!r}.", f"One of {', '.join(known)}; the nearest is {near!r}.", "Correct it."
        ) from None
