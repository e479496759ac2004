"""A captured cell as an app of Flower: what its nodes and its server do.

In a node a message is one round: the cell runs from its top, in a trial directory of its own, with one order.
"""

from __future__ import annotations

import base64
import json
import os
import tempfile
import time

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.errors import AutotrainError
from jupyter_autotrain.agent.ranks import api, cell_runner
from jupyter_autotrain.agent.ranks.federated import weights as weights_of
from jupyter_autotrain.agent.ranks.federated.flower import CHUNK, MARK

TYPE_CHECKING = False  # every module of the agent is imported without `typing`
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from jupyter_autotrain.agent.ranks.federated.weights import Weights

_LONGEST_S = 7 * 86400.0  # of a round without a deadline


def answer(folder: str, message: Any, node: Any, kind: str) -> Any:  # noqa: ANN401 - objects of Flower
    """Carry out one message in a node: run the cell with one order; return the reply.

    Raises:
        AutotrainError: The cell failed, or makes no rounds.
    """
    from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict  # noqa: PLC0415 - there in nodes alone

    settings = _settings(folder)
    start = {name: array.numpy() for name, array in message.content["arrays"].items()} if kind == "train" else {}
    config = dict(message.content["config"]) if kind == "train" else {}
    number = int(config.get("server-round", 1))
    order = {
        "id": 1, "kind": kind, "round": number, "rounds": settings["rounds"], "file": "",
        "config": {"mu": float(config.get("proximal-mu", 0.0))},
    }  # fmt: skip
    clients = settings["clients"]
    name = clients[int(node.node_config.get("partition-id", 0)) % len(clients)]["name"]
    told, found = _run_cell(folder, settings["script"], name, order, start)
    arrays = ArrayRecord({one: Array(array) for one, array in found.items()})
    metrics = MetricRecord({"num-examples": int(told["samples"]), **told["metrics"]})
    return Message(content=RecordDict({"arrays": arrays, "metrics": metrics}), reply_to=message)


def _settings(folder: str) -> dict[str, Any]:
    with open(f"{folder}/settings.json", encoding="utf-8") as file:
        found: dict[str, Any] = json.load(file)
        return found


def _run_cell(
    folder: str, script: str, client: str, order: dict[str, Any], start: Weights
) -> tuple[dict[str, Any], Weights]:
    """Run the cell in a trial directory of its own with one order; return what it told, and its weights."""
    directory = tempfile.mkdtemp()
    for name in wire.FOLDERS:
        os.makedirs(f"{directory}/{name}")
    if start:
        order["file"] = f"{wire.CONTROL}/weights-1.npz"
        order["sha256"], _ = weights_of.save(f"{directory}/{order['file']}", start)
    wire.write_atomically(f"{directory}/{wire.ROUND_FILE}", json.dumps(order).encode())
    trial = {"directory": directory, "bundle": f"{folder}/bundle", "script": script, "params": {"client": client}}
    context = api.TrialContext(directory, {**trial, "client": client})
    stream = f"{directory}/{wire.ROUNDS}"

    def has_answered() -> bool:
        return _answers(stream) != []

    context.should_stop = has_answered  # type: ignore[method-assign] # after its one order
    cell_runner.enter_work(directory, f"{folder}/bundle")
    outcome, _ = cell_runner.CellRunner(context).run()
    answers = _answers(stream)
    if not answers:
        reason = outcome["reason"] or "its cell makes no rounds: for round in trial.rounds(model)"
        raise AutotrainError(f"The client {client} has not answered: {reason}")
    return answers[0], weights_of.load(f"{directory}/{answers[0]['file']}", answers[0]["sha256"])


def _answers(stream: str) -> list[dict[str, Any]]:
    if not os.path.exists(stream):
        return []
    with open(stream, encoding="utf-8") as file:
        return [told for told in map(json.loads, file) if "order" in told]


def serve(folder: str, grid: Any) -> None:  # noqa: ANN401 - objects of Flower
    """Make the rounds with a strategy of Flower, as the app's server; print each, and the model at the end."""
    from flwr.app import Message, RecordDict  # noqa: PLC0415 - there in servers alone

    settings = _settings(folder)
    while len(list(grid.get_node_ids())) < settings["min_clients"]:
        time.sleep(0.5)
    node = min(grid.get_node_ids())
    asked = Message(content=RecordDict(), message_type="query", dst_node_id=node)
    (reply,) = grid.send_and_receive([asked])
    result = _strategy(settings).start(
        grid, reply.content["arrays"], num_rounds=settings["rounds"], timeout=settings["deadline_s"] or _LONGEST_S
    )
    path = f"{folder}/global.npz"
    weights_of.save(path, {name: array.numpy() for name, array in result.arrays.items()})
    with open(path, "rb") as file:
        text = base64.b64encode(file.read()).decode()
    for part, begin in enumerate(range(0, len(text), CHUNK)):
        _print({"part": part, "model": text[begin : begin + CHUNK]})


def _strategy(settings: Mapping[str, Any]) -> Any:  # noqa: ANN401 - of Flower
    from flwr.serverapp import strategy  # noqa: PLC0415 - there in servers alone
    from flwr.serverapp.strategy.strategy_utils import aggregate_metricrecords  # noqa: PLC0415 - as above

    rounds: list[int] = []

    def metrics_of(records: Any, weighted_by: str) -> Any:  # noqa: ANN401 - of Flower
        found = aggregate_metricrecords(records, weighted_by)
        rounds.append(len(records))
        named = {f"global_{name}": value for name, value in found.items() if name != weighted_by}
        _print({"round": len(rounds), "metrics": {**named, "global_clients": len(records)}})
        return found

    least = settings["min_clients"]
    common = {
        "fraction_train": settings["fraction"], "fraction_evaluate": 0.0, "min_train_nodes": least,
        "min_available_nodes": least, "train_metrics_aggr_fn": metrics_of,
    }  # fmt: skip
    made = {
        "fedavg": (strategy.FedAvg, {}), "fedprox": (strategy.FedProx, {"proximal_mu": settings["mu"]}),
        "fedadam": (strategy.FedAdam, {"eta": settings["server_lr"]}), "median": (strategy.FedMedian, {}),
        "fedyogi": (strategy.FedYogi, {"eta": settings["server_lr"]}),
        "trimmed_mean": (strategy.FedTrimmedAvg, {"beta": settings["trim"]}),
        "krum": (strategy.Krum, {"num_malicious_nodes": settings["malicious"]}),
    }  # fmt: skip
    kind, options = made[settings["strategy"]]
    return kind(**common, **options)


def _print(told: Mapping[str, object]) -> None:
    print(f"\n{MARK}{json.dumps(told)}", flush=True)  # noqa: T201 - the way to the trial
