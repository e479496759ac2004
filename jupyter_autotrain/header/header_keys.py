"""The keys that a cell header may have: their types, defaults, descriptions and examples."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from jupyter_autotrain.core.data import FETCH_LIMIT_BYTES
from jupyter_autotrain.core.spec import LAUNCHERS, TRACKERS
from jupyter_autotrain.header.backend_models import BackendForms, backend_field
from jupyter_autotrain.header.distributions import read_distribution, read_name
from jupyter_autotrain.header.objectives import EnvironmentSection, Goals, MatchForm
from jupyter_autotrain.header.quantities import OneOf, ShortForm
from jupyter_autotrain.header.search_keys import Constraints, ParallelSection, Tuner
from jupyter_autotrain.header.sections.data import DataEntry
from jupyter_autotrain.header.sections.federated import MODES, FederatedSection
from jupyter_autotrain.header.sections.hooks import HookSection
from jupyter_autotrain.header.sections.section import (
    EARLY_STOP_RULE,
    BudgetSection,
    EarlyStopSection,
    ResourcesSection,
    Section,
    ShipSection,
)
from jupyter_autotrain.header.types import (
    AS_INTEGER,
    AS_NUMBER,
    CellNumbers,
    Count,
    Duration,
    Name,
    Patterns,
    Secrets,
    Size,
    TrialReference,
    Truth,
    VariableName,
    VariableNames,
    VariableText,
    list_of_words,
)

_Distribution = Annotated[
    Any, BeforeValidator(read_distribution), WithJsonSchema({"type": ["string", "array", "object"]})
]
_SearchName = Annotated[str, BeforeValidator(read_name)]


def _ship(value: object) -> object:
    return value if isinstance(value, dict | ShipSection) else {"files": value}


class HeaderKeys(Section):
    """The keys that a cell header may have."""

    name: Name | None = Field(
        default=None, description="Name of the experiment; repeats become name@2, name@3.", examples=["digits"]
    )
    backend: Annotated[Any, BackendForms()] = backend_field()
    mode: Annotated[str, OneOf(MODES)] = Field(
        default="batch",
        description="batch: trials are independent of each other; federated: the cell is the training of one client, "
        "and the clients train one model together without showing their data.",
        examples=["federated"],
    )
    clients: Annotated[tuple[Name, ...], BeforeValidator(list_of_words)] = Field(
        default=(), description="With mode federated: the places that train.", examples=["[hospital-a, hospital-b]"]
    )
    federated: FederatedSection | None = Field(
        default=None, description="How the clients train together.", examples=["{rounds: 20, strategy: fedadam}"]
    )
    objective: Goals | None = Field(
        default=None,
        description="The reported metric that ranks trials, by its last value or by that of max(METRIC), min(METRIC), "
        "mean(METRIC), each also of the newest values only: mean(METRIC, last=5). Of several in a list the first ranks "
        "trials, and the search weighs them against each other.",
        examples=[
            "maximize val_acc",
            "maximize max(val_acc)",
            "minimize mean(loss, last=5)",
            "[maximize val_acc, minimize latency_ms]",
        ],
    )
    search: dict[_SearchName, _Distribution] = Field(
        default_factory=dict,
        description="What each hyperparameter may be; each is a plain variable of the cell.",
        examples=["{lr: 'loguniform(1e-4, 1e-1)', width: 'choice(32, 64)'}"],
    )
    constraints: Constraints = Field(
        default=(),
        description="What the last values of metrics keep in a good trial; the search keeps away from what does not.",
        examples=["latency_ms <= 20", "[latency_ms <= 20, memory_mb <= 500]"],
    )
    tuner: Tuner | None = Field(
        default=None,
        description="Search algorithm, with its own options: tpe where there is an objective, else random; grid where "
        "the search has no more points than trials. evolution is NSGA-II, qmc a Sobol sequence, gp a Gaussian process, "
        "cmaes for numbers alone, batch a given list, pbt a population that goes on from checkpoints of its best; any "
        "sampler of Optuna by its class, of OptunaHub by package and class, those of installed packages by name. With "
        "study and study_name it goes on from a study of Optuna.",
        examples=[
            "random",
            "{name: tpe, n_startup_trials: 20}",
            "{optuna: GPSampler}",
            "{name: tpe, study: 'sqlite:///old.db'}",
            "{name: pbt, population_size: 8}",
            "{optunahub: samplers/auto_sampler, class: AutoSampler}",
        ],
    )
    early_stop: Annotated[EarlyStopSection, ShortForm("rule", EARLY_STOP_RULE)] = Field(
        default=EarlyStopSection(rule="none"),
        description="Ends trials that fall behind: median, those worse than the median of the others at the same step; "
        "asha, all but the best third at 1, 3, 9, ... reports; hyperband, as asha, but most trials are judged later; "
        "curve, those whose extrapolated end is worse than the best; threshold, those beyond bounds; patience, those "
        "that become no better; optuna:CLASS, by a pruner of Optuna.",
        examples=[
            "median",
            "{rule: threshold, upper: 10}",
            "{rule: 'optuna:MedianPruner', options: {n_startup_trials: 3}}",
            "{rule: median, warmup_steps: 5, min_trials: 3}",
        ],
    )
    trials: Count | None = Field(
        default=None,
        description="How many trials; 1 without a search, 10 with one, 50 with pbt, all with a grid.",
        examples=["40"],
    )
    concurrency: Annotated[int, Field(ge=1, le=10_000), AS_INTEGER] = Field(
        default=1,
        description="How many trials run at the same time, on all backends together; `at_most` limits one of them.",
        examples=["4"],
    )
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000), AS_INTEGER] = Field(
        default=0,
        description="Waiting trials of experiments with a higher one go first; none that runs is ended for it.",
        examples=["10"],
    )
    weight: Annotated[float, Field(gt=0, le=1_000_000), AS_NUMBER] = Field(
        default=1.0,
        description="The share of the slots that experiments of one priority get is in proportion to how many each "
        "could use, times this.",
        examples=["3"],
    )
    resources: ResourcesSection = Field(
        default=ResourcesSection(), description="What one trial needs.", examples=["{gpus: 1, memory: 8GB}"]
    )
    launcher: Annotated[str, OneOf(LAUNCHERS, (("torch", "torchrun"), ("mpirun", "mpi"), ("mpiexec", "mpi")))] = Field(
        default="env",
        description="How the workers of one trial find each other: env sets RANK, WORLD_SIZE, MASTER_ADDR, ...; "
        "torchrun, mpi, tensorflow and paddle do what these expect. The last two are chosen where the cell imports "
        "that library, and nothing is said.",
        examples=["torchrun"],
    )
    elastic: Truth = Field(
        default=False,
        description="With launcher torchrun: a trial goes on when a worker or host is lost, and takes it in again.",
        examples=["true"],
    )
    timeout: Duration | None = Field(default=None, description="Longest time of one trial.", examples=["30m"])
    stall: Duration | None = Field(
        default=600.0,
        description="After how long without a report it is told where each of the several workers of a trial stands; "
        "the trial goes on. null: never.",
        examples=["30m"],
    )
    post_mortem: Truth = Field(
        default=False,
        description="A worker whose cell raises an exception stops there, until %autotrain debug has looked into it.",
        examples=["true"],
    )
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
    setup: CellNumbers = Field(
        default=(),
        description="Numbers of executed cells that run in each trial before everything else, such as those that "
        "register something at a library; the list of what differs says which.",
        examples=["[3, 5]"],
    )
    ship: Annotated[ShipSection, BeforeValidator(_ship)] = Field(
        default=ShipSection(), description="Files to send along.", examples=["[data/*.csv, helpers.py]"]
    )
    data: dict[VariableName, DataEntry] = Field(
        default_factory=dict,
        description="What trials read: in the cell `data.NAME` is its path there, a pathlib.Path. Trials only read it: "
        "elsewhere it is shared by all trials and write-protected, here it is your own file.",
        examples=[
            "{train: ./train.parquet}",
            "{images: {path: /mnt/imagenet}}",
            "{pets: {cvat: task/12, format: coco}}",
        ],
    )
    returns: VariableNames = Field(
        default=(), description="Variables of the cell to bring back (`%autotrain load`).", examples=["[model]"]
    )
    autolog: Truth = Field(
        default=True,
        description="Libraries report by themselves: the loops of transformers, Lightning, Keras, XGBoost and "
        "scikit-learn, and what the cell logs to wandb, trackio, TensorBoard and MLflow. What the cell itself reports "
        "goes before it.",
        examples=["false"],
    )
    fetch_limit: Size = Field(
        default=FETCH_LIMIT_BYTES,
        description="How much of what a trial returns and writes on another machine is copied here at its end, small "
        "files first; the rest stays there until `%autotrain pull`.",
        examples=["1GB"],
    )
    track: Annotated[tuple[Annotated[str, OneOf(TRACKERS)], ...], BeforeValidator(list_of_words)] = Field(
        default=(),
        description="Tracking servers and files that get its parameters and metrics as they come: mlflow; wandb, as "
        "offline files; tensorboard, as event files; trackio. Where each is, its own variables say "
        "(MLFLOW_TRACKING_URI, WANDB_DIR, TENSORBOARD_LOGDIR, TRACKIO_DIR); one that is away gets all later.",
        examples=["mlflow", "[mlflow, tensorboard]"],
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
    start_from: TrialReference | None = Field(
        default=None,
        description="The trial whose checkpoint each trial begins with, as `checkpoint.load()` gives it: an "
        "experiment's by its number, or the best one of an experiment. Curves continue that trial's.",
        examples=["digits#3", "digits"],
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
        description="Plans how a model is split over the workers of a trial, whose cell runs that with "
        "`plan.apply(model, optimizer, loader)`; the plan is kept with the experiment.",
        examples=["{workers: 4, model: net, inputs: batch}"],
    )
