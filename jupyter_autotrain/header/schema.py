"""A checked header, and the experiment that it asks for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, PrivateAttr, WithJsonSchema

from jupyter_autotrain.agent.environment import passed
from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.core.data import FETCH_LIMIT_BYTES
from jupyter_autotrain.core.federated import FederatedSpec
from jupyter_autotrain.core.hooks import Hook
from jupyter_autotrain.core.profile import LOCAL, BackendChoice
from jupyter_autotrain.core.space import count_points, is_finite
from jupyter_autotrain.core.spec import (
    LAUNCHERS,
    Budget,
    Bundle,
    ExperimentSpec,
    Resources,
)
from jupyter_autotrain.header.backend_models import BackendForms, BackendTypes, backend_field
from jupyter_autotrain.header.distributions import read_distribution, read_name
from jupyter_autotrain.header.federated_section import MODES, FederatedSection
from jupyter_autotrain.header.hooks_section import HookSection
from jupyter_autotrain.header.objectives import EnvironmentSection, Goals, MatchForm
from jupyter_autotrain.header.quantities import OneOf, ShortForm
from jupyter_autotrain.header.search_keys import Constraints, ParallelSection, Tuner, TunerChoice
from jupyter_autotrain.header.sections import (
    EARLY_STOP_RULE,
    BudgetSection,
    DataEntry,
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
        "torchrun, mpi, tensorflow and paddle do what these expect.",
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
        examples=["{train: ./train.parquet}", "{images: {path: /mnt/imagenet}}"],
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
    track: Annotated[tuple[Annotated[str, OneOf(("mlflow",))], ...], BeforeValidator(list_of_words)] = Field(
        default=(),
        description="Tracking servers that get its parameters, metrics and files as they come. Where one is, its own "
        "variables say (MLFLOW_TRACKING_URI); one that is away gets all later.",
        examples=["mlflow"],
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


EXHAUSTIVE_TUNERS = ("grid", "batch")
DEFAULT_TRIALS = 10  # of a search without `trials:`
DEFAULT_POPULATION_TRIALS = 50  # five generations of ten
_NOTHING: Mapping[str, str] = MappingProxyType({})


class Header(HeaderKeys):
    """The content of a cell header, checked. A subclass made by `with_backend_types` knows the backends' options."""

    backend_types: ClassVar[BackendTypes] = ()
    backend_sections: ClassVar[tuple[str, ...]] = ()

    _text: str = PrivateAttr("")
    _choices: tuple[BackendChoice, ...] = PrivateAttr((LOCAL,))

    def written_as(self, text: str) -> Self:
        """Return the same header, remembering how it was written."""
        copy = self.model_copy()
        copy._text = text  # noqa: SLF001 - a copy of itself
        return copy

    def with_choices(self, choices: tuple[BackendChoice, ...]) -> Self:
        """Return the same header, with the backends that `backend:` means."""
        copy = self.model_copy()
        copy._choices = choices  # noqa: SLF001 - a copy of itself
        return copy

    @property
    def choices(self) -> tuple[BackendChoice, ...]:
        """The backends that trials may use, each with the options that this header sets for its type."""
        return tuple(replace(choice, options=self._options_of(choice.profile.type)) for choice in self._choices)

    @property
    def trial_count(self) -> int:
        """Return how many trials to run, at most."""
        if self.clients:
            return len(self.clients) if self._federated else 1
        if not self.search:
            return self.trials or 1
        if self.tuner is not None and self.tuner.name in EXHAUSTIVE_TUNERS:
            points = count_points(self.search)
            return min(self.trials or points, points)
        if self.tuner is not None and self.tuner.name == "pbt":
            return self.trials or DEFAULT_POPULATION_TRIALS
        return self.trials or self._least(DEFAULT_TRIALS)

    def _least(self, trials: int) -> int:
        """Return a number of trials, or that of the space's points where these are fewer."""
        return min(trials, count_points(self.search)) if is_finite(self.search) else trials

    @property
    def chosen_tuner(self) -> TunerChoice:
        """The search algorithm: the one that the header names, else one by what is searched."""
        if isinstance(self.tuner, TunerChoice):
            return self.tuner
        trials = self.trial_count
        if self.search and is_finite(self.search) and count_points(self.search) <= trials:
            return TunerChoice("grid")
        return TunerChoice("tpe" if self.objective else "random")

    @property
    def workers_per_node(self) -> int:
        """The number of processes of a trial on each of its hosts."""
        workers = self.parallel.workers if self.parallel else None
        return workers // self.resources.nodes if workers else self.resources.workers_per_node

    @property
    def data_paths(self) -> dict[str, str]:
        """The entries of `data:`: of each the path here that is sent, or ""."""
        return {name: entry.send or "" for name, entry in self.data.items()}

    @property
    def chosen_hooks(self) -> tuple[Hook, ...]:
        """The hooks that this experiment uses."""
        names = self.hooks if self.notify is None else self.notify
        return tuple(self.hooks[name].to_hook(name) for name in names)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names and patterns of the environment variables that this header gives to trials."""
        return (*self.env, *self.secrets, *self.pass_env)

    def to_spec(self, *, bundle: Bundle, name: str, environ: Mapping[str, str] = _NOTHING) -> ExperimentSpec:
        """Return the experiment this header asks for.

        Args:
            bundle: The captured code.
            name: The experiment's name where the header gives none.
            environ: The submitter's variables; trials get some of them.
        """
        needs = self.resources
        return ExperimentSpec(
            name=self.name or name,
            bundle=bundle,
            backends=self.choices,
            objective=self.objective[0] if self.objective else None,
            more_objectives=self.objective[1:] if self.objective else (),
            constraints=self.constraints,
            search=dict(self.search),
            tuner=self.chosen_tuner.name,
            tuner_options=self.chosen_tuner.options,
            early_stop=self.early_stop.rule,
            early_stop_options=self.early_stop.to_options(),
            trials=self.trial_count,
            concurrency=self.trial_count if self.clients else self.concurrency,
            priority=self.priority,
            weight=self.weight,
            resources=Resources(
                needs.cpus, needs.memory, needs.gpus, needs.gpu_memory, needs.nodes, self.workers_per_node
            ),
            launcher=self.launcher,
            elastic=self.elastic,
            timeout_s=self.timeout,
            stall_s=self.stall,
            post_mortem=self.post_mortem,
            budget=Budget(self.budget.time, self.budget.failures),
            seed=self.seed,
            environment=passed(environ, self.pass_env),
            env=dict(self.env),
            python_environment=self.environment.to_spec(),
            secrets=self.secrets,
            returns=self.returns,
            autolog=self.autolog,
            data=tuple(entry.to_source(name) for name, entry in self.data.items()),
            fetch_limit_bytes=self.fetch_limit,
            retries=self.retries,
            hooks=self.chosen_hooks,
            track=self.track,
            federated=self._federated,
            flower=self._flower,
            header=self._text,
        )

    @property
    def _federated(self) -> FederatedSpec | None:
        section = self.federated or FederatedSection()
        return section.to_spec(self.clients) if self.clients and not section.is_flower else None

    @property
    def _flower(self) -> FederatedSpec | None:
        section = self.federated
        return section.to_spec(self.clients) if section is not None and section.is_flower else None

    def _options_of(self, type_name: str) -> JsonObject:
        """Return what the section of a type of backends sets."""
        section = getattr(self, type_name) if type_name in self.backend_sections else None
        return {} if section is None else section.model_dump(mode="json", exclude_unset=True)
