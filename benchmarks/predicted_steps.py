"""Predicted against measured: step times of plans that ran on processes of this machine, after `calibrate`.

Four models, each with every row of plans that executes on 2 and on 4 processes (gloo): the plan predicts, the real
`torchrun` measures. Printed for each model and number of processes, and for all: Spearman's rank correlation (limit: at
least 0.9), how far the default answer's measured step is from the fastest measured one (limit: at most 10 %), the
median error of a prediction, and memory. The machine has to be otherwise idle.

Run: python benchmarks/predicted_steps.py [MODEL ...]
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
from torch import nn

from jupyter_autotrain import plan
from jupyter_autotrain.client.calibrating import calibrate
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.parallel.plan import Megatron, Plan

SPEARMAN = 0.9
CHOSEN = 0.1
WARM_STEPS = 4
STEPS = 15
BATCH = 16
LENGTH = 64
SIZES = {"hidden_size": 256, "intermediate_size": 1024, "num_hidden_layers": 4, "num_attention_heads": 8}
GPT2 = {"n_embd": 256, "n_layer": 4, "n_head": 8, "n_positions": LENGTH}
TOKENS = {"vocab_size": 1024, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
DATA = {
    "DDP": {"zero": 0},
    "DDP, 2 microbatches": {"zero": 0, "microbatches": 2},
    "DDP, recomputed": {"zero": 0, "recompute": "full"},
    "ZeRO-1": {"zero": 1},
    "FSDP": {"zero": 3},
    "FSDP, recomputed": {"zero": 3, "recompute": "full"},
}
TENSOR = {
    "tensor": Megatron(tensor=2),
    "tensor and sequence": Megatron(tensor=2, sequence_parallel=True),
    "tensor, recomputed": Megatron(tensor=2, recompute="full"),
}


class Mlp(nn.Module):
    """Plain products, wide enough that they take longer than what surrounds them."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(1024, 1024), nn.ReLU()) for _ in range(6)))
        self.head = nn.Linear(1024, 10)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return nn.functional.cross_entropy(self.head(self.layers(x)), y)


MODELS: dict[str, Callable[[], nn.Module]] = {
    "mlp": Mlp,
    "gpt2": lambda: transformers.GPT2LMHeadModel(transformers.GPT2Config(**GPT2, **TOKENS)),
    "llama": lambda: transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES, **TOKENS)),
    "bert": lambda: transformers.BertForMaskedLM(transformers.BertConfig(**SIZES, vocab_size=1024)),
}


def batch_of(model: str) -> dict[str, torch.Tensor]:
    """Return a batch of one model's inputs."""
    if model == "mlp":
        return {"x": torch.randn(256, 1024), "y": torch.randint(0, 10, (256,))}
    ids = torch.randint(3, 1024, (BATCH, LENGTH))
    return {"input_ids": ids, "labels": ids}


@dataclass(frozen=True, slots=True)
class Row:
    """One plan, predicted and measured."""

    model: str
    ranks: int
    name: str
    predicted_s: float
    measured_s: float
    is_default: bool


def plans_of(model: str, ranks: int) -> dict[str, Plan]:
    """Return the plans that are run, each once; the default answer is the first of them."""
    net, inputs, cluster = MODELS[model](), batch_of(model), f"{ranks}xlocal"
    found = {"default": plan(net, inputs, cluster)}
    recipes = {"default": found["default"].recipe()}
    for name, pins in {**DATA, **TENSOR}.items():
        mode = "data_parallel" if name in DATA else "hybrid_parallel"
        try:
            made = plan(net, inputs, cluster, mode=mode, search="recursive_programming", pins=pins)
            recipe = made.recipe()
        except AutotrainError as refusal:
            print(f"  {model}, {ranks} ranks, {name}: left out: {str(refusal).splitlines()[0]}")
            continue
        same = next((other for other, known in recipes.items() if known == recipe), "")
        if same:
            print(f"  {model}, {ranks} ranks, {name}: left out: the same as {same}")
            continue
        found[name] = made
        recipes[name] = recipe
    return found


def measure(model: str, ranks: int, plans: dict[str, Plan], folder: Path) -> dict[str, float]:
    """Return the seconds of a step of each plan, run one after another by one `torchrun`."""
    asked = folder / f"{model}-{ranks}.json"
    asked.write_text(json.dumps({name: one.to_json() for name, one in plans.items()}))
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    command = [*launch, __file__, "--rank", model, str(asked)]
    environ = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environ)
    if done.returncode:
        raise SystemExit(done.stderr[-3000:])
    measured: dict[str, float] = json.loads(asked.with_suffix(".measured").read_text())
    return measured


def run_rank(model: str, asked: Path) -> None:
    """Run every plan on this rank, step by step in turn; rank 0 writes the least seconds of a step of each.

    What else the machine does then disturbs all plans alike, and the least step least of all.
    """
    plans = {name: Plan.from_json(written) for name, written in json.loads(asked.read_text()).items()}
    running = {name: steps_of(model, made) for name, made in plans.items()}
    took: dict[str, list[float]] = {name: [] for name in plans}
    for steps in running.values():  # one plan after another: memory is watched in one of these
        for _ in range(WARM_STEPS):
            next(steps)
    for _ in range(STEPS):
        for name, steps in running.items():
            took[name].append(next(steps))
    measured = {name: min(seconds) for name, seconds in took.items()}
    if os.environ["RANK"] == "0":
        asked.with_suffix(".measured").write_text(json.dumps(measured))
    running.clear()  # models use the group
    gc.collect()
    torch.distributed.destroy_process_group()  # else its threads may end the process with an error


def steps_of(model: str, made: Plan) -> Iterator[float]:
    """Train with a plan; yield the seconds of each step, of the slowest rank."""
    torch.manual_seed(0)
    net = MODELS[model]()
    train = made.parallelize(net, optimizer=torch.optim.AdamW(net.parameters(), lr=1e-3))
    for _ in range(WARM_STEPS + STEPS):
        torch.distributed.barrier()
        began_s = time.perf_counter()
        train.step(batch_of(model))
        slowest = torch.tensor(time.perf_counter() - began_s)
        torch.distributed.all_reduce(slowest, op=torch.distributed.ReduceOp.MAX)
        yield float(slowest)


def spearman(rows: list[Row]) -> float:
    """Return the rank correlation of predicted and measured times."""
    predicted = ranked([row.predicted_s for row in rows])
    measured = ranked([row.measured_s for row in rows])
    return statistics.correlation(predicted, measured)


def ranked(values: list[float]) -> list[float]:
    """Return the rank of each value, equal ones sharing theirs."""
    order = sorted(values)
    return [order.index(value) + (order.count(value) - 1) / 2 for value in values]


def tell(label: str, rows: list[Row]) -> None:
    """Print the figures of some rows."""
    error = statistics.median(abs(row.predicted_s / row.measured_s - 1) for row in rows)
    words = f"{label}: {len(rows)} plans, Spearman {spearman(rows):.3f} (limit {SPEARMAN}), median error {error:.0%}"
    default = [row for row in rows if row.is_default]
    if len(default) == 1:
        above = default[0].measured_s / min(row.measured_s for row in rows) - 1
        words += f"; the default answer is {above:.0%} above the fastest (limit {CHOSEN:.0%})"
    print(words, flush=True)


def main(models: list[str]) -> None:
    with tempfile.TemporaryDirectory() as home:
        os.environ["JUPYTER_AUTOTRAIN_HOME"] = home
        began_s = time.perf_counter()
        calibrate("local", workers=4, say=lambda _: None)
        print(f"calibrate: {time.perf_counter() - began_s:.0f} s (limit 60 s)")
        every: list[Row] = []
        for model in models:
            for ranks in (2, 4):
                plans = plans_of(model, ranks)
                took = measure(model, ranks, plans, Path(home))
                rows = []
                for name, made in plans.items():
                    row = Row(model, ranks, name, made.cost.step_s, took[name], name == "default")
                    shown = f"{name} ({made.solution.name})" if row.is_default else name
                    print(
                        f"  {shown:40} {row.predicted_s * 1e3:8.1f} ms predicted {row.measured_s * 1e3:8.1f} measured"
                    )
                    rows.append(row)
                tell(f"{model}, {ranks} ranks", rows)
                every += rows
        tell("all", every)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--rank"]:
        run_rank(sys.argv[2], Path(sys.argv[3]))
    else:
        main(sys.argv[1:] or list(MODELS))
