"""The keys of the header: the one source of validation, help, completion and the published JSON Schema."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from jupyter_autotrain.core.data import FETCH_LIMIT_BYTES
from jupyter_autotrain.core.spec import (
    LAUNCHERS,
)
from jupyter_autotrain.header.backend_models import BackendForms, backend_field
from jupyter_autotrain.header.choices import OneOf, ShortForm
from jupyter_autotrain.header.data_section import DataEntry
from jupyter_autotrain.header.distributions import read_distribution, read_name
from jupyter_autotrain.header.hooks_section import HookSection
from jupyter_autotrain.header.objectives import Goal
from jupyter_autotrain.header.python_environments import EnvironmentSection, MatchForm
from jupyter_autotrain.header.sections import (
    EARLY_STOP_RULE,
    BudgetSection,
    EarlyStopSection,
    ParallelSection,
    ResourcesSection,
    Section,
    ShipSection,
)
from jupyter_autotrain.header.types import (
    AS_INTEGER,
    Count,
    Duration,
    Name,
    Patterns,
    Secrets,
    Size,
    Truth,
    VariableName,
    VariableNames,
    VariableText,
    list_of_words,
)

TUNERS = ("tpe", "random", "evolution", "grid", "batch")
_NNI_TUNERS = (("gridsearch", "grid"), ("batchtuner", "batch"))

_Distribution = Annotated[
    Any, BeforeValidator(read_distribution), WithJsonSchema({"type": ["string", "array", "object"]})
]
_SearchName = Annotated[str, BeforeValidator(read_name)]


def _ship(value: object) -> object:
    return value if isinstance(value, dict | ShipSection) else {"files": value}


class HeaderKeys(Section):
    """What a cell header may say."""

    name: Name | None = Field(
        default=None, description="Name of the experiment; repeats become name@2, name@3.", examples=["digits"]
    )
    backend: Annotated[Any, BackendForms()] = backend_field()
    objective: Goal | None = Field(
        default=None,
        description="The reported metric that ranks trials, by its last value or by that of max(METRIC), min(METRIC), "
        "mean(METRIC), each also of the newest values only: mean(METRIC, last=5).",
        examples=["maximize val_acc", "maximize max(val_acc)", "minimize mean(loss, last=5)"],
    )
    search: dict[_SearchName, _Distribution] = Field(
        default_factory=dict,
        description="What each hyperparameter may be; each is a plain variable of the cell.",
        examples=["{lr: 'loguniform(1e-4, 1e-1)', width: 'choice(32, 64)'}"],
    )
    tuner: Annotated[str, OneOf(TUNERS, _NNI_TUNERS)] | None = Field(
        default=None, description="Search algorithm; tpe where there is an objective, else random.", examples=["random"]
    )
    early_stop: Annotated[EarlyStopSection, ShortForm("rule", EARLY_STOP_RULE)] = Field(
        default=EarlyStopSection(rule="none"),
        description="Ends trials that fall behind: median, those worse than the median of the others at the same step; "
        "asha, all but the best third at 1, 3, 9, ... reports.",
        examples=["median", "{rule: median, warmup_steps: 5, min_trials: 3}"],
    )
    trials: Count | None = Field(
        default=None, description="How many trials; 1 without a search, 10 with one, all with a grid.", examples=["40"]
    )
    concurrency: Annotated[int, Field(ge=1, le=10_000), AS_INTEGER] = Field(
        default=1,
        description="How many trials run at the same time, on all backends together; `at_most` limits one of them.",
        examples=["4"],
    )
    resources: ResourcesSection = Field(
        default=ResourcesSection(), description="What one trial needs.", examples=["{gpus: 1, memory: 8GB}"]
    )
    launcher: Annotated[str, OneOf(LAUNCHERS, (("torch", "torchrun"), ("mpirun", "mpi"), ("mpiexec", "mpi")))] = Field(
        default="env",
        description="How the workers of one trial find each other: env sets RANK, WORLD_SIZE, MASTER_ADDR, ...; "
        "torchrun, mpi, tensorflow and paddle do what these expect.",
        examples=["torchrun"],
    )
    elastic: Truth = Field(
        default=False,
        description="With launcher torchrun: a trial goes on when a worker or host is lost, and takes it in again.",
        examples=["true"],
    )
    timeout: Duration | None = Field(default=None, description="Longest time of one trial.", examples=["30m"])
    budget: BudgetSection = Field(
        default=BudgetSection(), description="When to end before all trials ran.", examples=["{time: 2h, failures: 3}"]
    )
    seed: Annotated[int, Field(ge=0, lt=2**32), AS_INTEGER] | None = Field(
        default=None,
        description="Makes the search repeatable, and seeds the random numbers of trial 1 with it, of trial 2 with the "
        "next one, and so on. Without it every trial, each of its workers and each attempt starts from the notebook's "
        "random numbers as they were at submit, all alike.",
        examples=["1"],
    )
    env: dict[VariableName, VariableText] = Field(
        default_factory=dict, description="Environment variables of trials.", examples=["{OMP_NUM_THREADS: 1}"]
    )
    environment: Annotated[EnvironmentSection, MatchForm()] = Field(
        default=EnvironmentSection(),
        description="The interpreter and packages of trials; the backend's own interpreter where it is not given.",
        examples=["match", "{python: /opt/venv/bin/python}", "{conda: torch2}", "{image: 'python:3.12'}"],
    )
    pass_env: Patterns = Field(
        default=(),
        description="Variables of your environment to pass on, besides the usual ones that --dry-run shows.",
        examples=["[WANDB_PROJECT, SLURM_*]"],
    )
    secrets: Secrets = Field(
        default=(),
        description="Names of environment variables to pass on; never their values.",
        examples=["[HF_TOKEN]"],
    )
    not_secrets: VariableNames = Field(
        default=(),
        description="Names of variables that look like secrets but are none, so that they may travel.",
        examples=["[pad_token]"],
    )
    ship: Annotated[ShipSection, BeforeValidator(_ship)] = Field(
        default=ShipSection(), description="Files to send along.", examples=["[data/*.csv, helpers.py]"]
    )
    data: dict[VariableName, DataEntry] = Field(
        default_factory=dict,
        description="What trials read: in the cell `data.NAME` is its path there, a pathlib.Path. Trials only read it: "
        "elsewhere it is shared by all trials and write-protected, here it is your own file.",
        examples=["{train: ./train.parquet}", "{images: {path: /mnt/imagenet}}"],
    )
    returns: VariableNames = Field(
        default=(), description="Variables of the cell to bring back (`%autotrain load`).", examples=["[model]"]
    )
    fetch_limit: Size = Field(
        default=FETCH_LIMIT_BYTES,
        description="How much of what a trial returns and writes on another machine is copied here at its end, small "
        "files first; the rest stays there until `%autotrain pull`.",
        examples=["1GB"],
    )
    on_rerun: Annotated[str, OneOf(("keep", "stop", "ask"))] = Field(
        default="keep",
        description="What becomes of this cell's earlier run when it still runs: it continues next to the new one, is "
        "stopped first, or you are asked.",
        examples=["stop"],
    )
    retries: Annotated[int, Field(ge=0, le=100), AS_INTEGER] = Field(
        default=0, description="How often a failed trial is tried again.", examples=["2"]
    )
    hooks: dict[Name, HookSection] = Field(
        default_factory=dict,
        description="Web addresses and commands that are told when the experiment ends or fails, by name; in your own "
        "autotrain.yaml they are there for all experiments.",
        examples=["{slack: {url: '${SLACK_WEBHOOK_URL}'}}", "{bell: {command: [sh, tell.sh], events: failed}}"],
    )
    notify: Annotated[tuple[Name, ...], BeforeValidator(list_of_words)] | None = Field(
        default=None,
        description="Which hooks this experiment uses, by name: all where it is not given, none with `[]`.",
        examples=["[]"],
    )
    parallel: ParallelSection | None = Field(
        default=None,
        description="Plans how a big model is split over devices, and keeps the plan with the experiment; trials are "
        "not split by it yet.",
        examples=["{cluster: 2x8xH100, model: net}"],
    )
