"""Other spellings of the header's keys: camelCase, and NNI's names and nesting, brought to one form.

`trainingService: {platform: local, useActiveGpu: true}` becomes `backend: local` and `local: {use_active_gpu: true}`.
Lines travel along, so that a fault names the line as it was written.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from jupyter_autotrain.header.document import Document
from jupyter_autotrain.header.faults import Fault, KeyPath

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
SECTIONS = ("resources", "budget", "env", "data", "parallel", "hooks")  # merged key by key across sources
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
    ("tuner", "name"): ("tuner",),
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
    "experiment_working_directory": "JUPYTER_AUTOTRAIN_HOME says where experiments lie",
    "use_annotation": "`search:` says what is searched",
    "log_level": "logs are kept in full",
    "debug": "logs are kept in full",
    "mode": "each trial runs once and ends",
    "reuse": "each trial has a process of its own",
    "reuse_mode": "each trial has a process of its own",
    "version": "there is one format of headers",
}


def snake(key: str) -> str:
    """`trialConcurrency` as `trial_concurrency`."""
    return _HUMP.sub("_", key).lower() if key[:1].islower() else key


def canonical(document: Document) -> Document:
    """The same settings under the schema's own names. Linear in the settings."""
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
        new = _spelled(old)
        if new[0] in _NEEDLESS:
            self._fault(old, f"{old[0]!r} is not needed", _NEEDLESS[str(new[0])], "remove this line")
        elif (new in _MOVES and not isinstance(value, dict)) or new == ("search_space",):
            self._put(old, _MOVES[new], _moved(new, value))
        elif isinstance(value, dict) and new[0] not in _FREE and (len(new) == 1 or new in _GROUPS):
            if new not in _GROUPS:
                self._put(old, new, {})
            for key, item in value.items():
                self.move((*old, key), item)
        elif len(new) > 1 and new[:-1] in _GROUPS:
            dotted = ".".join(str(part) for part in old)
            self._fault(old, f"{dotted} has no counterpart here", "", "remove this line")
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


def _spelled(old: KeyPath) -> KeyPath:
    return tuple(snake(part) if isinstance(part, str) else part for part in old)


def _moved(path: KeyPath, value: object) -> object:
    return f"{value} default" if path[-1] == "optimize_mode" else value
