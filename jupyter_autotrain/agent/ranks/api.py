"""The names a cell may use inside a trial: `report`, `should_stop`, `checkpoint`, `params`, `rank`, `trial`, ...

They are there without an import in a cell that runs as a trial; one that the notebook binds itself stays the
notebook's, and is reached as an attribute of `trial`. A module beside the notebook gets them from `jupyter_autotrain`
(`import jupyter_autotrain as at; at.report(...)`), and so do processes that a trial starts.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from functools import cache

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.ranks.checkpoint import Checkpoint
from jupyter_autotrain.agent.ranks.namespace import Params, TrialNamespace, with_optuna_form
from jupyter_autotrain.agent.ranks.reporter import Reporter, print_to_stderr
from jupyter_autotrain.agent.trial import trial_file
from jupyter_autotrain.agent.trial.redact import Redactor

TYPE_CHECKING = False  # every trial imports this module

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import ModuleType

    from jupyter_autotrain.agent.ranks.data import DataPaths
    from jupyter_autotrain.agent.ranks.debugger import Debugging
    from jupyter_autotrain.agent.ranks.federated.rounds import Round
    from jupyter_autotrain.agent.ranks.pictures import Pictures
    from jupyter_autotrain.agent.ranks.scheduler_hints import SchedulerHints
    from jupyter_autotrain.agent.ranks.stop_agreement import StopAgreement

_LOOK_EVERY_S = 0.05


class TrialContext:
    """The state that one trial's processes share.

    Args:
        directory: The trial directory.
        trial: `TrialSpec` as JSON.
    """

    def __init__(self, directory: str, trial: Mapping[str, object]) -> None:
        self.directory = directory
        self.trial = trial
        self.script = f"{trial['bundle']}/{trial.get('script') or 'main.py'}"
        given = trial.get("params")
        self.params = Params(given if isinstance(given, dict) else {})
        named = trial.get("secrets")
        values = [os.environ.get(name, "") for name in named] if isinstance(named, list) else []
        self.redact = Redactor(values).text
        self.worker = _number(wire.RANK_VARIABLE, 0)  # not RANK: a cell may start a launcher of its own
        self.rank = _number("RANK", 0)
        self.world_size = _number("WORLD_SIZE", 1)
        self._is_rank = wire.RANK_VARIABLE in os.environ
        self.reporter = Reporter(directory, self.redact, self.worker, self.world_size if self._is_rank else 1)
        self.checkpoint = Checkpoint(
            f"{directory}/{wire.CHECKPOINTS}", str(trial.get("resume_from") or ""), self.reporter.note, self.worker
        )
        self.stop_seen = False
        self._looks = False
        self._agreement: StopAgreement | None = None
        self._look_again_s = 0.0
        self._pictures: Pictures | None = None
        self._data: DataPaths | None = None
        self._hints: SchedulerHints | None = None
        self._debugging: Debugging | None = None

    def should_stop(self) -> bool:
        """Tell whether the trial is to end itself: with several ranks all get the same answer at the same call."""
        if self.stop_seen:
            return True
        if not self._is_rank or self.world_size == 1:
            if not self._looks:  # from the first look on it has time to end itself
                from jupyter_autotrain.agent.ranks import soft_stop  # noqa: PLC0415 - only trials that look pay

                self._looks = True
                soft_stop.prepare(f"{self.directory}/{wire.STOP_FILE}")
            self.stop_seen = self._is_stop_asked()
            return self.stop_seen
        if self._agreement is None:
            from jupyter_autotrain.agent.ranks.stop_agreement import make_agreement  # noqa: PLC0415 - only several ranks pay

            self._agreement = make_agreement(self.directory, self._is_stop_asked, self.reporter.note)
        self.stop_seen = self._agreement.ask()
        return self.stop_seen

    def leave(self) -> None:
        """Let no other rank wait for this one, as the cell has ended."""
        if self._agreement is not None:
            self._agreement.close()

    def _is_stop_asked(self) -> bool:
        """Tell whether a stop is asked for. This is cheap: it looks at most every 50 ms."""
        if (now := time.monotonic()) < self._look_again_s:
            return False
        self._look_again_s = now + _LOOK_EVERY_S
        return os.path.exists(f"{self.directory}/{wire.STOP_FILE}")

    def display(self, *objects: object, **options: object) -> object:
        """Show objects as a notebook does: pictures become outputs of the trial, the rest is printed."""
        if self._pictures is None:
            from jupyter_autotrain.agent.ranks.pictures import Pictures  # noqa: PLC0415 - only trials that display pay

            self._pictures = Pictures(self.directory, self.reporter)
        return self._pictures.display(*objects, **options)

    def hints(self, **told: object) -> None:
        """Tell an elastic scheduler how the training can use replicas; see `agent.ranks.scheduler_hints`."""
        if not self._hints:
            from jupyter_autotrain.agent.ranks.scheduler_hints import SchedulerHints  # noqa: PLC0415 - only elastic trials pay

            self._hints = SchedulerHints(self.reporter.note, os.environ, self.rank)
        self._hints(**told)  # type: ignore[arg-type] # the notebook's values, sent as JSON

    @property
    def debugging(self) -> Debugging:
        """The stops of this rank, at which the user can look into it."""
        if self._debugging is None:
            from jupyter_autotrain.agent.ranks.debugger import Debugging  # noqa: PLC0415 - only ranks that stop pay

            self._debugging = Debugging(self.trial, self.directory, self.worker, self.redact)
        return self._debugging

    def rounds(self, model: object, samples: int = 1) -> Iterator[Round]:
        """Train a model together with other clients; see `agent.ranks.federated.rounds`."""
        from jupyter_autotrain.agent.ranks.federated import rounds  # noqa: PLC0415 - only clients pay

        return rounds.rounds(self, model, samples)

    @property
    def data(self) -> DataPaths:
        """The paths of the trial's data, which is there.

        Raises:
            DataError: Something is not there, or cannot be fetched.
        """
        if self._data is None:
            from jupyter_autotrain.agent.ranks import data  # noqa: PLC0415 - only trials with data pay

            self._data = data.prepare(self.trial)
        return self._data

    def note_once(self, level: str, text: str) -> None:
        """Send a note and print it on stderr, unless a process of this trial has done so before."""
        import zlib  # noqa: PLC0415 - only trials with such a note pay

        marker = f"{self.directory}/{wire.NOTED}{zlib.crc32(text.encode()):08x}"
        try:
            os.close(os.open(marker, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            return
        except OSError:
            pass  # a full disk: better twice than never
        self.reporter.note(level, text)
        print_to_stderr(f"autotrain: {text}")

    def stop_reason(self) -> str:
        """Return the reason why the trial is to end itself."""
        try:
            with open(f"{self.directory}/{wire.STOP_FILE}", encoding="utf-8") as file:
                return file.read().strip() or "Asked to stop early."
        except OSError:
            return "Asked to stop early."

    def was_reported(self, name: str) -> bool:
        """Tell whether any process of this worker has reported this metric."""
        if name in self.reporter.seen:
            return True
        needle = f"{json.dumps(name)}:".encode()
        try:
            with open(self.reporter.path, "rb") as file:
                return any(needle in line for line in file if line.startswith(b'["m"'))
        except OSError:
            return False

    def load_data(self, name: str) -> object:
        """Return a captured object of the notebook."""
        import pickle  # noqa: PLC0415 - only cells with captured data pay

        with open(f"{self.trial['bundle']}/data/{name}.pkl", "rb") as file:
            return pickle.load(file)  # noqa: S301 - the user's own notebook wrote it

    def override(self, name: str, literal: object) -> object:
        """Return the trial's value of a parameter that the cell also sets, and print it where it differs."""
        if name not in self.params:
            return literal
        value = self.params[name]
        if value != literal:
            print(f"{name} = {literal!r} in the cell; this trial uses {value!r} (search)")  # noqa: T201 - the trial's own log
        return value

    def at_import(self, actions: Mapping[str, Callable[[ModuleType], object]]) -> None:
        """Act on modules when they are imported; see `agent.ranks.library_hooks`."""
        from jupyter_autotrain.agent.ranks import library_hooks  # noqa: PLC0415 - only trials that need it pay

        library_hooks.at_import(actions)

    def seed_again(self) -> None:
        """Seed the loaded libraries once more: modules that the cell needs may have seeded or drawn meanwhile."""
        from jupyter_autotrain.agent.ranks import library_hooks  # noqa: PLC0415 - as above

        if isinstance(seed := self.trial.get("seed"), int):
            library_hooks.seed_loaded(seed)

    def names(self) -> dict[str, object]:
        """Return all names that are injected into a cell's globals, with their values.

        Raises:
            DataError: Data of the trial is not there.
        """
        members: dict[str, object] = {
            "params": self.params,
            "report": self.reporter,
            "should_stop": self.should_stop,
            "checkpoint": self.checkpoint,
            "display": self.display,
            "rank": self.rank,
            "world_size": self.world_size,
        }
        if self.trial.get("data"):
            members["data"] = self.data
        report = with_optuna_form(self.reporter, str(self.trial.get("objective") or ""))
        of_trial = {**members, "report": report, "hints": self.hints, "rounds": self.rounds}
        return {
            **{name: value for name, value in self.params.items() if name.isidentifier()},
            **members,
            "trial": TrialNamespace(self.params, **of_trial),  # type: ignore[arg-type]  # the members by name
            "__autotrain_at_import__": self.at_import,
            "__autotrain_data__": self.load_data,
            "__autotrain_file__": f"{self.directory}/{wire.WORK}/main.py",
            "__autotrain_override__": self.override,
            "__autotrain_params__": self.params,
            "__autotrain_seed__": self.seed_again,
        }


def _number(variable: str, default: int) -> int:
    text = os.environ.get(variable, "")
    return int(text) if text.isdigit() else default


@cache
def load(directory: str) -> TrialContext:
    """Return the trial in this directory; the same object for every caller of this process."""
    return TrialContext(directory, trial_file.read(directory))


def context() -> TrialContext | None:
    """Return the trial this process belongs to; None outside a trial."""
    directory = os.environ.get(wire.TRIAL_VARIABLE, "")
    return load(directory) if directory else None


def report(step: int | None = None, *unnamed: object, all_ranks: bool | str = False, **metrics: object) -> None:
    """Report metrics: any number of names, each an int, float, bool, or a numpy or torch value of one element.

    Never waits and never raises: a value that cannot be kept (infinite, not a number, without a name) leaves a note
    instead; NaN is kept as NaN. Outside a trial it prints one line.

    Args:
        step: How far the training is; may not go back. Counted from 0, one per call, when not given.
        *unnamed: Refused, with a note: a metric needs a name.
        all_ranks: In a trial of several workers the values of rank 0 count, those of the others are left out. True
            makes one value of all: their mean; "sum", "min" and "max" are others. Each rank has to make the call; one
            that leaves out a step, while it reports a later one or ends, is left out there, with a note. In an elastic
            trial on several hosts only the ranks of the first one count, which a note says.
        **metrics: The values by name.
    """
    if (trial := context()) is not None:
        trial.reporter(step, *unnamed, all_ranks=all_ranks, **metrics)
    else:
        print("" if step is None else f"step {step}:", *unnamed, *(f"{k}={v}" for k, v in metrics.items()))  # noqa: T201 - its purpose


def should_stop() -> bool:
    """Tell whether this trial is to end itself, by a stop request or an early-stopping rule.

    All ranks of a trial get the same answer at the same call, if they call it equally often; on several hosts with a
    process group of PyTorch from the first call on, or where they are reached by SSH. Elsewhere each host decides.
    """
    return (trial := context()) is not None and trial.should_stop()


def __getattr__(name: str) -> object:
    if name in {"checkpoint", "data", "display", "params", "rank", "world_size"}:
        if (trial := context()) is not None:
            return getattr(trial, name)
        raise AttributeError(f"{name} is there only inside a trial")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
