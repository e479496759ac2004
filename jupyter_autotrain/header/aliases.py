"""Other ways to write settings: camelCase, NNI's names and nesting, and flags on the magic line.

Other spellings of the header's keys: camelCase, and NNI's names and nesting, brought to one form. `trainingService:
{platform: local, useActiveGpu: true}` becomes `backend: local` and `local: {use_active_gpu: true}`. Lines travel
along, so that a fault names the line as it was written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from jupyter_autotrain.header.document import (
    Document,
    Fault,
    KeyPath,
    PlainScalar,
    SourceLocation,
    dotted,
    expected_instead,
    shown,
)

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
SECTIONS = ("resources", "budget", "env", "data", "parallel", "hooks", "federated")  # merged key by key across sources
_FREE = ("search", "env", "secrets", "backend", "data", "hooks")  # what is inside is the user's own
_MOVES: Mapping[KeyPath, KeyPath] = {
    ("experiment_name",): ("name",),
    ("trial_concurrency",): ("concurrency",),
    ("max_trial_number",): ("trials",),
    ("max_experiment_duration",): ("budget", "time"),
    ("max_trial_duration",): ("timeout",),
    ("trial_gpu_number",): ("resources", "gpus"),
    ("search_space",): ("search",),
    ("training_service", "platform"): ("backend",),
    ("training_service", "trial_gpu_number"): ("resources", "gpus"),
    ("training_service", "max_trial_number_per_gpu"): ("local", "max_trials_per_gpu"),
    ("training_service", "use_active_gpu"): ("local", "use_active_gpu"),
    ("training_service", "gpu_indices"): ("local", "gpu_indices"),
    ("local", "max_trial_number_per_gpu"): ("local", "max_trials_per_gpu"),
    ("tuner", "class_args", "optimize_mode"): ("objective",),
    ("tuner", "class_args", "seed"): ("seed",),
    ("assessor",): ("early_stop",),
    ("assessor", "name"): ("early_stop", "rule"),
    ("assessor", "class_args", "start_step"): ("early_stop", "warmup_steps"),
}
_NEEDLESS = {
    "trial_command": "the cell's code is the trial",
    "trial_code_directory": "the cell's code is the trial; `ship:` sends files",
    "nni_manager_ip": "no trial calls back",
    "experiment_working_directory": "JUPYTER_AUTOTRAIN_HOME says where experiments are kept",
    "use_annotation": "`search:` says what is searched",
    "log_level": "logs are kept in full",
    "debug": "logs are kept in full",
    "reuse": "each trial has a process of its own, which begins soon; `local: {reuse: false}` starts it anew",
    "reuse_mode": "each trial has a process of its own, which begins soon; `local: {reuse: false}` starts it anew",
    "version": "there is one format of headers",
}


def snake(key: str) -> str:
    """`trialConcurrency` as `trial_concurrency`."""
    return _HUMP.sub("_", key).lower() if key[:1].islower() else key


def canonical(document: Document) -> Document:
    """Return the same settings under the schema's own names. Linear in the settings."""
    canonical_document = _CanonicalDocument(document)
    for key, value in document.data.items():
        canonical_document.move((key,), value)
    return canonical_document.finish()


_GROUPS = {path[:i] for path in _MOVES for i in range(1, len(path))} - {("local",)}


class _CanonicalDocument:
    """Settings on their way to the schema's own names; `moved` says under which name each path went on."""

    def __init__(self, source: Document) -> None:
        self.source = source
        self.target = Document(faults=list(source.faults))
        self.moved: dict[KeyPath, KeyPath] = {}

    def move(self, old: KeyPath, value: object) -> None:
        """Put a setting, and all that is inside it, under the schema's own name."""
        new = _spelled(old)
        if new[0] in _NEEDLESS:
            self._fault(old, f"{old[0]!r} is not needed", _NEEDLESS[str(new[0])], "remove this line")
        elif new == ("search_space",) or (new in _MOVES and not isinstance(value, dict)):
            self._put(old, _MOVES[new], _moved(new, value))
        elif isinstance(value, dict) and _is_section(new):
            if new not in _GROUPS or new == ("tuner",):
                self._put(old, new, {})
            for key, item in value.items():
                self.move((*old, key), item)
        elif new[0] == "tuner" and len(new) > 1:
            self._put(old, ("tuner", new[-1]), value)
        elif new[:-1] in _GROUPS:
            self._fault(old, f"{dotted(old)} has no counterpart here", "", "remove this line")
        else:
            self._put(old, new, value)

    def _put(self, old: KeyPath, new: KeyPath, value: object) -> None:
        inner = self.target.data
        for part in new[:-1]:
            step = inner.setdefault(str(part), {})
            if not isinstance(step, dict):
                return
            inner = step
        last = str(new[-1])
        if last in inner and not (value == {} and isinstance(inner[last], dict)):
            first = self.target.location(new)
            self._fault(old, f"{old[-1]!r} sets {last!r} again (first on {first})", "expected once", "remove one")
            return
        inner.setdefault(last, value)
        for i in range(1, len(new) + 1):
            self.target.locations.setdefault(new[:i], self.source.location(old))
        self.moved.setdefault(old, new)

    def _fault(self, old: KeyPath, found: str, expected: str, action: str) -> None:
        self.target.faults.append(Fault(found, expected, action, self.source.location(old)))

    def finish(self) -> Document:
        """Bring the lines of everything inside what was moved."""
        for path, location in self.source.locations.items():
            length = next((i for i in range(len(path), 0, -1) if path[:i] in self.moved), 0)
            if length:
                self.target.locations.setdefault(self.moved[path[:length]] + path[length:], location)
        return self.target


def _is_section(path: KeyPath) -> bool:
    """Tell whether the keys inside a mapping are the schema's, and not the user's own."""
    return path[0] not in _FREE and (len(path) == 1 or path in _GROUPS)


def _spelled(old: KeyPath) -> KeyPath:
    return tuple(snake(part) if isinstance(part, str) else part for part in old)


def _moved(path: KeyPath, value: object) -> object:
    return f"{value} default" if path[-1] == "optimize_mode" else value


_MAGIC_LINE = SourceLocation(1)
_LONGEST_LINE = 4_096


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag: its spellings, the header key it sets (empty: none), whether a value follows, and what it does.

    `text` is empty where it does what its key does.
    """

    spellings: tuple[str, ...]
    path: KeyPath = ()
    takes_value: bool = True
    text: str = ""


FLAGS: Sequence[Flag] = (
    Flag(("--backend",), ("backend",)),
    Flag(("--name",), ("name",)),
    Flag(("--gpus",), ("resources", "gpus")),
    Flag(("--gpu-memory",), ("resources", "gpu_memory")),
    Flag(("--cpus",), ("resources", "cpus")),
    Flag(("--memory",), ("resources", "memory")),
    Flag(("--concurrency", "-j"), ("concurrency",)),
    Flag(("--trials",), ("trials",)),
    Flag(("--priority",), ("priority",)),
    Flag(("--objective",), ("objective",)),
    Flag(("--tuner",), ("tuner",)),
    Flag(("--early-stop",), ("early_stop",)),
    Flag(("--timeout",), ("timeout",)),
    Flag(("--seed",), ("seed",)),
    Flag(("--retries",), ("retries",)),
    Flag(("--on-rerun",), ("on_rerun",)),
    Flag(("--file", "-f"), text="Settings from a file."),
    Flag(("--wait",), takes_value=False, text="Wait until the experiment ends."),
    Flag(("--check",), takes_value=False, text="Say in a few lines what would be sent and what differs."),
    Flag(("--dry-run",), takes_value=False, text="Show all that would be sent, and send nothing."),
    Flag(("--session",), text="Run the cell in an open session, which keeps its variables."),
    Flag(("--rehearse",), takes_value=False, text="Run two steps as several of the workers, in one process, to check."),
)


@dataclass(frozen=True, slots=True)
class Flags:
    """The settings of the line besides header keys."""

    wait: bool = False
    check: bool = False
    dry_run: bool = False
    file: str = ""
    rehearse: bool = False
    session: str = ""


def spellings() -> list[str]:
    """All flags."""
    return [spelling for flag in FLAGS for spelling in flag.spellings]


def flag_of(spelling: str) -> Flag | None:
    """Return the flag that is written so; None where there is none."""
    return next((flag for flag in FLAGS if spelling in flag.spellings), None)


def read_line(line: str) -> tuple[Flags, Document]:
    """Read the magic line into flags and settings; faults are in the document."""
    document = Document()
    if len(line) > _LONGEST_LINE:
        found = f"a magic line of {len(line)} characters"
        document.faults.append(
            Fault(found, f"expected at most {_LONGEST_LINE}", "write a header below it", _MAGIC_LINE)
        )
        return Flags(), document
    try:
        words = shlex.split(line, comments=True)
    except ValueError as error:
        document.faults.append(Fault(f"{shown(line)}: {error}", "expected closed quotes", "close them", _MAGIC_LINE))
        return Flags(), document
    options: dict[str, str] = {}
    for flag, value in _pairs(words, document):
        if flag.path:
            _without_nulls(document, flag, value)
        else:
            options[flag.spellings[0]] = value
    wait, check, dry_run, rehearse = (name in options for name in ("--wait", "--check", "--dry-run", "--rehearse"))
    file, session = (options.get(name, "") for name in ("--file", "--session"))
    return Flags(wait, check, dry_run, file, rehearse, session), document


def _pairs(words: Sequence[str], document: Document) -> Iterator[tuple[Flag, str]]:
    rest = list(reversed(words))
    while rest:
        word = rest.pop()
        if not word.startswith("-") or word == "-":
            yield Flag(("NAME",), ("name",)), word
            continue
        key, given, value = _parted(word)
        flag = flag_of(key)
        if flag is None:
            document.faults.append(_unknown(key))
        elif fault := _misuse(flag, key, is_given=given, has_more=bool(rest)):
            document.faults.append(fault)
        elif given or not flag.takes_value:
            yield flag, value
        else:
            yield flag, _value(flag, rest)


def _misuse(flag: Flag, key: str, *, is_given: bool, has_more: bool) -> Fault | None:
    """Return the fault of a flag whose value is missing, or that takes none and has one."""
    if flag.takes_value and not is_given and not has_more:
        return Fault(f"{key} without a value", f"expected {key} VALUE", "", _MAGIC_LINE)
    if is_given and not flag.takes_value:
        return Fault(f"{key} with a value", f"expected {key} alone", "", _MAGIC_LINE)
    return None


def _unknown(key: str) -> Fault:
    return Fault(f"unknown flag {shown(key)}", expected_instead(key, spellings()), location=_MAGIC_LINE)


def _value(flag: Flag, rest: list[str]) -> str:
    value = rest.pop()
    if flag.path == ("objective",) and value in {"maximize", "minimize"} and rest and not rest[-1].startswith("-"):
        value = f"{value} {rest.pop()}"
        while value.count("(") > value.count(")") and rest:
            value = f"{value} {rest.pop()}"
    return value


def _parted(word: str) -> tuple[str, bool, str]:
    """`--gpus=2` and `-j2` as key, whether a value was given, value."""
    if word.startswith("--"):
        key, equals, value = word.partition("=")
        return key, bool(equals), value
    return word[:2], len(word) > 2, word[2:].removeprefix("=")


def _without_nulls(document: Document, flag: Flag, value: str) -> None:
    inner = document.data
    for part in flag.path[:-1]:
        inner = inner.setdefault(str(part), {})  # type: ignore[assignment]  # sections of flags are mappings
    key = str(flag.path[-1])
    if key in inner:
        found = f"{flag.spellings[0]} {value}: {key} was given before as {shown(inner[key])}"
        document.faults.append(Fault(found, "expected one", "remove one", _MAGIC_LINE))
    inner[key] = PlainScalar(value)
    for i in range(1, len(flag.path) + 1):
        document.locations[flag.path[:i]] = _MAGIC_LINE
