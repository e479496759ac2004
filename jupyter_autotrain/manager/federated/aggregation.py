"""The next global model from the updates of a round: means here, the other strategies by Flower's library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from jupyter_autotrain.agent.ranks.federated import masking
from jupyter_autotrain.agent.ranks.federated.weights import Array, Weights, WeightsError, difference, is_float, norm_of
from jupyter_autotrain.core.federated import OF_FLOWER, FederatedSpec, Privacy

_CLIP_MARGIN = 1.001  # of a norm that was computed in another precision
_LEAST_COMPARED = 3
_MOMENTS = ("m_t", "v_t")


@dataclass(frozen=True, slots=True)
class Update:
    """The answer of a client to an order; `samples` weigh it."""

    weights: Weights
    samples: int
    metrics: Mapping[str, float]


def fault_of(spec: FederatedSpec, current: Weights, update: Update, *, is_masked: bool) -> str:
    """Return why an update is refused by itself, as the rest of a sentence that begins with its client; "" if not."""
    if fault := difference(current, update.weights):
        return fault
    if is_masked:
        has_masks = all(array.dtype == np.uint64 for array in update.weights.values())
        return "" if has_masks else "sent weights without masks"
    for name, array in update.weights.items():
        if array.dtype != current[name].dtype:
            return f"sent weight {name!r} as {array.dtype}, expected {current[name].dtype}"
        if not np.all(np.isfinite(array)):
            return f"sent weight {name!r} with values that are not finite"
    if spec.privacy and (norm := norm_of(update.weights, current)) > spec.privacy.clip * _CLIP_MARGIN:
        return f"sent an update of norm {norm:.3g}, which `clip: {spec.privacy.clip:g}` does not allow"
    return ""


def outliers(spec: FederatedSpec, current: Weights, updates: Mapping[int, Update]) -> dict[int, str]:
    """Return the clients whose updates are refused beside the others, and why."""
    if spec.secure or len(updates) < _LEAST_COMPARED:
        return {}
    norms = {number: norm_of(update.weights, current) for number, update in updates.items()}
    limit = spec.most_norm * float(np.median(list(norms.values())))
    found = {}
    for number, norm in norms.items():
        if norm > limit > 0:
            found[number] = f"sent an update of norm {norm:.3g}; {spec.most_norm:g} times the median is {limit:.3g}"
    return found


def aggregate(
    spec: FederatedSpec, round_number: int, current: Weights, updates: Sequence[Update], moments: Weights
) -> tuple[Weights, Weights]:
    """Return the next global weights, and the moments that the strategy keeps for the round after.

    Args:
        spec: The training.
        round_number: From 1.
        current: The global weights that clients began with.
        updates: Their answers, checked, in order of their numbers.
        moments: What the last call returned; empty at first.
    """
    weighed = [1 if spec.privacy else update.samples for update in updates]  # as many samples would say more
    if spec.secure:
        mean = masking.unmasked_mean([update.weights for update in updates], sum(weighed))
    else:
        mean = _mean([update.weights for update in updates], weighed)
    found = mean
    if spec.strategy in OF_FLOWER:
        results = [Update(mean, 1, {})] if spec.secure or spec.strategy in {"fedadam", "fedyogi"} else updates
        found, moments = _by_flower(spec, round_number, current, results, moments)
        found = {name: found.get(name, mean[name]) for name in current}
    if spec.privacy and spec.privacy.noise:
        found = _with_noise(found, spec.privacy, len(updates))
    return {name: _as_before(found[name], current[name]) for name in current}, moments


def mean_metrics(updates: Sequence[Update]) -> dict[str, float]:
    """Return the mean of each metric, weighed by samples, over the clients that have it."""
    sums: dict[str, float] = {}
    samples: dict[str, int] = {}
    for update in updates:
        for name, value in update.metrics.items():
            sums[name] = sums.get(name, 0.0) + value * update.samples
            samples[name] = samples.get(name, 0) + update.samples
    return {name: total / samples[name] for name, total in sums.items()}


def epsilon(spec: FederatedSpec, rounds: int) -> float | None:
    """Return the privacy that some rounds have spent; None where there is no noise."""
    privacy = spec.privacy
    if privacy is None or not privacy.noise:
        return None
    import dp_accounting  # noqa: PLC0415 - only private trainings pay
    from dp_accounting import rdp  # noqa: PLC0415 - as above

    share = min(1.0, spec.per_round / len(spec.clients))  # of fewer than all, the usual approximation
    event = dp_accounting.PoissonSampledDpEvent(share, dp_accounting.GaussianDpEvent(privacy.noise))
    accountant = rdp.RdpAccountant().compose(event, rounds)
    return float(accountant.get_epsilon(privacy.delta))


def _mean(weights: Sequence[Weights], samples: Sequence[int]) -> Weights:
    total = float(sum(samples))
    found: Weights = {}
    for name in weights[0]:
        parts = [one[name].astype(np.float64) * (many / total) for one, many in zip(weights, samples, strict=True)]
        found[name] = np.sum(parts, axis=0)
    return found


def _with_noise(weights: Weights, privacy: Privacy, clients: int) -> Weights:
    random = np.random.default_rng()
    deviation = privacy.noise * privacy.clip / clients
    found = dict(weights)
    for name, array in weights.items():
        if is_float(array):
            found[name] = array + random.normal(0.0, deviation, array.shape)
    return found


def _as_before(array: Array, current: Array) -> Array:
    """Return an array in the type of the model's; counters are rounded."""
    return (array if is_float(current) else np.rint(array)).astype(current.dtype)


def _by_flower(
    spec: FederatedSpec, round_number: int, current: Weights, updates: Sequence[Update], moments: Weights
) -> tuple[Weights, Weights]:
    """Have a strategy of Flower make the trained weights; what it would keep in memory is passed in and out."""
    from flwr.common import Code, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays  # noqa: PLC0415 - slow

    names = [name for name, array in current.items() if is_float(array)]
    strategy = _strategy(spec, ndarrays_to_parameters([current[name] for name in names]))
    if moments:
        for moment in _MOMENTS:
            setattr(strategy, moment, [moments[f"{moment}:{name}"] for name in names])
    results = []
    for update in updates:
        parameters = ndarrays_to_parameters([update.weights[name] for name in names])
        results.append((cast("Any", None), FitRes(Status(Code.OK, ""), parameters, update.samples, {})))
    made, _ = strategy.aggregate_fit(round_number, results, [])
    if made is None:
        raise WeightsError(f"{spec.strategy} made no model of {len(updates)} updates")
    kept: Weights = {}
    if getattr(strategy, _MOMENTS[0], None):
        for moment in _MOMENTS:
            kept.update(zip([f"{moment}:{name}" for name in names], getattr(strategy, moment), strict=True))
    return dict(zip(names, parameters_to_ndarrays(made), strict=True)), kept


def _strategy(spec: FederatedSpec, initial: Any) -> Any:  # noqa: ANN401 - of Flower
    from flwr.server import strategy  # noqa: PLC0415 - slow

    common: dict[str, Any] = {"fit_metrics_aggregation_fn": lambda _: {}}
    if spec.strategy in {"fedadam", "fedyogi"}:
        made = strategy.FedAdam if spec.strategy == "fedadam" else strategy.FedYogi
        return made(initial_parameters=initial, eta=spec.server_lr, **common)
    if spec.strategy == "median":
        return strategy.FedMedian(**common)
    if spec.strategy == "trimmed_mean":
        return strategy.FedTrimmedAvg(beta=spec.trim, **common)
    return strategy.Krum(num_malicious_clients=spec.malicious, **common)
