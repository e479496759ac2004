"""The specification of an experiment and of a trial. Frozen, JSON both ways by `agent.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final

from jupyter_autotrain.agent.environments.python_environment import PythonEnvironment, PythonPackage
from jupyter_autotrain.agent.json import JsonObject, JsonValue
from jupyter_autotrain.core.data import FETCH_LIMIT_BYTES, DataSource
from jupyter_autotrain.core.federated import FederatedSpec
from jupyter_autotrain.core.hooks import Hook
from jupyter_autotrain.core.objective import Constraint, Objective
from jupyter_autotrain.core.profile import LOCAL, BackendChoice
from jupyter_autotrain.core.space import Distribution
from jupyter_autotrain.core.tuner import EarlyStopOptions

# The names that every trial finds in its globals, next to those of its search space.
TRIAL: Final = "trial"
"""The one that has all others as attributes, for notebooks that bind some of them themselves."""

MEMBERS: Final = ("checkpoint", "display", "params", "rank", "report", "should_stop", "world_size")
"""The attributes of `trial`; each of them is a name of its own too."""

TRIAL_ONLY: Final = ("hints", "rounds", "should_prune", "suggest_categorical", "suggest_float", "suggest_int")
"""Further attributes of `trial`, which are no names of their own."""

TRIAL_NAMES: Final = frozenset({TRIAL, *MEMBERS})

DATA: Final = "data"
"""The name of the paths of `data:`; a trial has it, and as an attribute of `trial`, only where the header has such."""


@dataclass(frozen=True, slots=True)
class Resources:
    """The needs of a trial on each of its nodes. None means: no limit asked.

    Attributes:
        adjacent: `ring` or `mesh`: its accelerators, and its nodes, are neighbours by their links; None: any will do.
    """

    cpus: float | None = None
    memory_bytes: int | None = None
    gpus: int = 0
    gpu_memory_bytes: int | None = None
    nodes: int = 1
    workers_per_node: int = 1
    adjacent: str | None = None

    @property
    def ranks(self) -> int:
        """The number of workers of a trial on all its nodes."""
        return self.nodes * self.workers_per_node


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget at whose end an experiment ends, before its trials are used up."""

    time_s: float | None = None
    failures: int | None = None


LAUNCHERS = ("env", "torchrun", "mpi", "tensorflow", "paddle")
TRACKERS = ("mlflow", "wandb", "tensorboard", "trackio")

BATCH: Final = "batch"
"""The mode of an experiment whose trials run a cell to its end."""

STANDARD: Final = "standard"
"""The mode of a session: one trial, an interpreter that is given cell after cell."""


@dataclass(frozen=True, slots=True)
class CapturedName:
    """One row of the capture table shown before submit.

    `how` is one of: import, source, data, parameter, builtin, file, skipped.
    """

    name: str
    how: str
    origin: str = ""
    size_bytes: int = 0
    stale: str = ""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The code of an experiment, as it lies in `experiments/<id>/bundle/`.

    Attributes:
        script: Name of the main script inside the bundle.
        sha256: Digest over all files of the bundle.
        captured: The capture table.
        files: Shipped files, relative to the bundle's `files/` folder.
        folders: Folders that a trial finds, empty where no file is shipped into them.
        size_bytes: Sum of all files.
        python: The interpreter that captured it; a backend on the same machine runs trials with it.
        cwd: The folder the notebook worked in, or "".
        source_map: For each line of the script (line 1 first) "cell label:line", or "".
        differences: What a trial does not have as the notebook had it, one line each.
        python_packages: The installed distributions that its code and data need.
        python_version: Of the interpreter that captured it, such as 3.11.7.
    """

    script: str = "main.py"
    sha256: str = ""
    captured: tuple[CapturedName, ...] = ()
    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()
    size_bytes: int = 0
    python: str = ""
    cwd: str = ""
    source_map: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    python_packages: tuple[PythonPackage, ...] = ()
    python_version: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """A notebook in one session of its kernel.

    Two are the same when their notebooks are; where one notebook is not known, when their sessions are. So a notebook
    finds its experiments again after a restart of its kernel, and no other notebook takes them for its own.

    Attributes:
        notebook: Its path (absolute), or "" where the front end does not provide it.
        session: An identifier of this kernel process, or "".
        asked_by: The program that submitted in the user's name, such as an agent over MCP; "": the user.
    """

    notebook: str = ""
    session: str = ""
    asked_by: str = ""

    @property
    def label(self) -> str:
        """The name that people use for it."""
        return Path(self.notebook).name or "a notebook or script of unknown name"


@dataclass(frozen=True, slots=True)
class TrialSource:
    """A trial whose checkpoint another trial begins with, and whose curve that one continues.

    Attributes:
        experiment_id: Its experiment.
        number: Its number.
        attempt: The attempt that saved the checkpoint, or the last one where that is not known here.
        label: Its name for people, such as `digits#3`.
        request: The request that made the new trial; 0: the search of its experiment did.
    """

    experiment_id: str
    number: int
    attempt: int
    label: str
    request: int = 0

    @property
    def job_id(self) -> str:
        """The job that saved the checkpoint."""
        return f"{self.experiment_id}-{self.number}-{self.attempt}"


@dataclass(frozen=True, slots=True)
class ExperimentSpec:
    """One submission, complete: what the store keeps and the manager works from.

    Attributes:
        name: The user's name for it; experiments of the same name are numbered as `name@N`.
        backends: The backends that its trials may use; their names differ.
        objective: None means that trials are not ranked.
        more_objectives: What the search weighs against it; trials are ranked by `objective` alone.
        constraints: What the metrics of a good trial keep.
        search: The search space; empty means: run the cell as it is.
        tuner: Name of the search algorithm (see `tuners`).
        tuner_options: Its own options, by name.
        early_stop: Name of the early-stopping rule, or "none".
        trials: How many trials to run.
        concurrency: How many of them run at the same time.
        priority: Waiting trials of a higher one go first.
        weight: How much of what it wants it gets, beside others of its priority.
        launcher: What starts the workers of a trial and tells them of each other; one of `LAUNCHERS`.
        elastic: True when a trial goes on without a worker or node that is lost, and with it when it is back.
        stall_s: After how long without a report it is told where the ranks of a trial stand; None: never.
        post_mortem: Whether a rank stops where its cell raises an exception, until somebody has looked into it.
        environment: The submitter's variables that trials get, as of the submission (`agent.environment`).
        env: Variables that the header sets; they go before `environment`.
        python_environment: The interpreter and packages that its trials run with.
        secrets: Names only; values never enter a spec.
        returns: Names of the cell's variables to bring back.
        autolog: Whether libraries report by themselves.
        data: What its trials read besides, by the header's section `data:`.
        fetch_limit_bytes: How much of what a trial leaves elsewhere is copied at its end; the rest on request.
        retries: How often a failed trial is tried again.
        start_from: The trial whose checkpoint its trials begin with.
        hooks: What is told of its end and of its trials.
        federated: How its trials, the clients, train one model together; None: they are independent.
        flower: The federated training that its one trial has a SuperLink of Flower run; None: it runs the cell.
        header: The header as the user wrote it, for the record.
        track: What mirrors it outside, of `TRACKERS`.
        origin: The notebook it was submitted from.
        mode: `BATCH` or `STANDARD`.
    """

    name: str
    bundle: Bundle
    backends: tuple[BackendChoice, ...] = (LOCAL,)
    objective: Objective | None = None
    more_objectives: tuple[Objective, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    search: Mapping[str, Distribution] = field(default_factory=dict)
    tuner: str = "tpe"
    tuner_options: JsonObject = field(default_factory=dict)
    early_stop: str = "none"
    early_stop_options: EarlyStopOptions = field(default_factory=EarlyStopOptions)
    trials: int = 1
    concurrency: int = 1
    priority: int = 0
    weight: float = 1.0
    resources: Resources = field(default_factory=Resources)
    launcher: str = "env"
    elastic: bool = False
    timeout_s: float | None = None
    stall_s: float | None = None
    post_mortem: bool = False
    budget: Budget = field(default_factory=Budget)
    seed: int | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    python_environment: PythonEnvironment = field(default_factory=PythonEnvironment)
    secrets: tuple[str, ...] = ()
    returns: tuple[str, ...] = ()
    autolog: bool = True
    data: tuple[DataSource, ...] = ()
    fetch_limit_bytes: int = FETCH_LIMIT_BYTES
    retries: int = 0
    start_from: TrialSource | None = None
    hooks: tuple[Hook, ...] = ()
    federated: FederatedSpec | None = None
    flower: FederatedSpec | None = None
    header: str = ""
    track: tuple[str, ...] = ()
    origin: Origin = field(default_factory=Origin)
    mode: str = BATCH

    @property
    def objectives(self) -> tuple[Objective, ...]:
        """All that is optimized, the one that ranks trials first."""
        return () if self.objective is None else (self.objective, *self.more_objectives)

    @property
    def has_independent_trials(self) -> bool:
        """True when each trial runs the cell for itself: no session, no clients of one model."""
        return self.mode == BATCH and self.federated is None and self.flower is None

    @property
    def backend_names(self) -> str:
        """The names of its backends, for people."""
        return ", ".join(choice.profile.name for choice in self.backends)

    @property
    def hour_price(self) -> tuple[float, str] | None:
        """The price of one trial for an hour, and its currency; None where the profile of its only place names none."""
        price = self.backends[0].profile.price if len(self.backends) == 1 else None
        if price is None:
            return None
        needs = self.resources
        return needs.nodes * price.per_hour(needs.cpus or 1.0, needs.gpus), price.currency

    @property
    def secret_names(self) -> tuple[str, ...]:
        """The names of the secrets of its trials, and of the variables of its hooks."""
        names = list(self.secrets)
        for hook in self.hooks:
            names += hook.variables
        return tuple(names)

    def choice(self, backend: str) -> BackendChoice:
        """Return its choice of the backend with this name; its first for "", where none is decided.

        Raises:
            KeyError: It has none.
        """
        if not backend:
            return self.backends[0]
        for choice in self.backends:
            if choice.profile.name == backend:
                return choice
        raise KeyError(backend)


@dataclass(frozen=True, slots=True)
class TrialSpec:
    """One attempt at one set of parameters, the same for every backend: no path and no device of any machine.

    Attributes:
        experiment_id: The experiment's id.
        number: The trial's number in its experiment, from 1.
        attempt: From 1; a retry is a new attempt of the same trial.
        bundle_sha256: Digest of the bundle: the key by which a backend may store it once for all trials.
        script: Name of the main script inside the bundle.
        environment, env: Its variables, those of the submitter below those of the header.
        data: What it reads besides; the backend says where each lies, and sends what has to be sent.
        python_environment: The interpreter and packages it runs with.
        python_packages: The installed distributions that its code and data need.
        fetch_limit_bytes: As that of its experiment.
        source: The trial that it begins with; it counts as attempt 0.
        resume_attempt: The attempt whose checkpoints it continues from, or those of the last one before it that has
            any; None: from the beginning.
        resume_note: Why it does not go on from them, which the trial tells its user; the rest of a sentence that begins
            with the attempt.
        client: The client of a federated training that it is; "" where it is none.
        flower: As that of its experiment.
        options: Options of the backend, from its section of the header.
    """

    experiment_id: str
    number: int
    attempt: int
    bundle_sha256: str = ""
    script: str = "main.py"
    params: Mapping[str, JsonValue] = field(default_factory=dict)
    seed: int | None = None
    objective: str = ""
    resources: Resources = field(default_factory=Resources)
    launcher: str = "env"
    elastic: bool = False
    timeout_s: float | None = None
    stall_s: float | None = None
    post_mortem: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    python_environment: PythonEnvironment = field(default_factory=PythonEnvironment)
    python_packages: tuple[PythonPackage, ...] = ()
    secrets: tuple[str, ...] = ()
    returns: tuple[str, ...] = ()
    autolog: bool = True
    data: tuple[DataSource, ...] = ()
    fetch_limit_bytes: int = FETCH_LIMIT_BYTES
    source: TrialSource | None = None
    resume_attempt: int | None = None
    resume_note: str = ""
    client: str = ""
    flower: FederatedSpec | None = None
    options: JsonObject = field(default_factory=dict)

    @property
    def job_id(self) -> str:
        """The same trial and attempt always has this id; a backend must not start it twice."""
        return self.job_id_of(self.attempt)

    def job_id_of(self, attempt: int) -> str:
        """Return the job id of one of the trial's attempts; of attempt 0 that of its source."""
        if attempt == 0 and self.source is not None:
            return self.source.job_id
        return f"{self.experiment_id}-{self.number}-{attempt}"


@dataclass(frozen=True, slots=True)
class NodePlacement:
    """A node of the backend's inventory (`machine_id` may be ""), and the ids of the accelerators that it gives."""

    node: str
    accelerators: tuple[str, ...] = ()
    machine_id: str = ""


@dataclass(frozen=True, slots=True)
class Placement:
    """The place where the manager's allocator puts a trial.

    Attributes:
        nodes: One entry per node; empty where the backend decides.
        backend: The name of the backend's profile; "" before it is decided.
    """

    nodes: tuple[NodePlacement, ...] = ()
    backend: str = ""

    @property
    def accelerators(self) -> tuple[str, ...]:
        """Ids of all accelerators, node by node."""
        return tuple(chain.from_iterable(placed.accelerators for placed in self.nodes))
