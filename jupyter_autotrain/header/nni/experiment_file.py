"""An experiment file of NNI, of its version 2 and 3 or of the older form, as settings of a header and a command.

Its command is the trial; its folder of code travels. What has no counterpart is named, never silently left out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from jupyter_autotrain.core.text_format import closest_match
from jupyter_autotrain.errors import HeaderError
from jupyter_autotrain.header.aliases import snake
from jupyter_autotrain.header.nni.services import SERVICES, read_service

_OLD_KEYS: Final[Mapping[str, str]] = {
    "max_trial_num": "max_trial_number", "max_exec_duration": "max_experiment_duration",
    "search_space_path": "search_space_file", "training_service_platform": "platform",
}  # fmt: skip
_OLD_TRIAL_KEYS: Final[Mapping[str, str]] = {
    "command": "trial_command", "code_dir": "trial_code_directory", "gpu_num": "trial_gpu_number",
    "image": "image",
}  # fmt: skip
_NEEDLESS: Final = frozenset(
    {
        "nni_manager_ip", "debug", "log_level", "experiment_working_directory", "author_name", "log_dir",
        "nni_manager_nic", "tuner_gpu_indices", "log_collection", "version_check",
    }
)  # fmt: skip
_DIRECT: Final[Mapping[str, str]] = {
    "experiment_name": "name", "trial_concurrency": "concurrency", "max_trial_number": "trials",
    "max_trial_duration": "timeout", "search_space": "search",
}  # fmt: skip
_TUNERS: Final[Mapping[str, str]] = {
    "tpe": "tpe", "random": "random", "gridsearch": "grid", "evolution": "evolution", "naiveevolution": "evolution",
    "batch": "batch", "batchtuner": "batch", "gp": "gp", "gptuner": "gp", "anneal": "tpe", "smac": "tpe",
    "metis": "gp", "metistuner": "gp", "dngo": "gp", "dngotuner": "gp",
}  # fmt: skip
_ASSESSORS: Final[Mapping[str, str]] = {"medianstop": "median", "curvefitting": "curve"}
_LOCAL_OPTIONS: Final[Mapping[str, str]] = {
    "use_active_gpu": "use_active_gpu", "max_trial_number_per_gpu": "max_trials_per_gpu", "gpu_indices": "gpu_indices",
}  # fmt: skip
_NO_LIMIT: Final = 100_000  # trials, where time alone ends the experiment
_Settings = dict[str, Any]


@dataclass(slots=True)
class NniExperiment:
    """An experiment of NNI.

    Attributes:
        command: The command of a trial, for a shell.
        folder: The folder of its code.
        settings: Keys of a header.
        notes: What differs from NNI, a sentence each.
    """

    command: str
    folder: Path
    settings: _Settings = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def is_nni(settings: Mapping[str, object]) -> bool:
    """Tell whether settings are an experiment of NNI: they name the command of a trial."""
    trial = settings.get("trial")
    return "trialCommand" in settings or (isinstance(trial, Mapping) and "command" in trial)


def read_nni_file(path: Path) -> NniExperiment:
    """Return the experiment that a file describes.

    Raises:
        HeaderError: It cannot be read, is no experiment of NNI, or asks for what cannot be.
    """
    document = _normal(_loaded(path), path)
    if not isinstance(document.get("trial_command"), str):
        raise HeaderError(
            f"{path.name} is not an experiment file of NNI: it has no trialCommand.",
            "Expected keys such as trialCommand, searchSpace, tuner and trialConcurrency.",
            "For settings of a cell write: %%autotrain -f FILE",
        )
    folder = (path.parent / str(document.pop("trial_code_directory", "."))).resolve()
    found = NniExperiment(document.pop("trial_command"), folder)
    found.settings["objective"] = "maximize default"
    _read_search_space(document, path)
    _read_algorithms(document, found, path)
    _read_service(document, found, path)
    _read_limits(document, found)
    for key, value in document.items():
        if key not in _DIRECT:
            raise _unknown(key, [*_DIRECT, "tuner", "assessor", "training_service"], path)
        found.settings[_DIRECT[key]] = value
    return found


def _loaded(path: Path) -> _Settings:
    try:
        loaded = YAML(typ="safe").load(path.read_text())
    except (OSError, ValueError, YAMLError) as error:
        raise HeaderError(
            f"{path} cannot be read: {error}", "An experiment file of NNI, in YAML.", "Correct its name or its text."
        ) from error
    if not isinstance(loaded, dict):
        raise HeaderError(f"{path.name} holds no keys.", "An experiment file of NNI, in YAML.", "Name another file.")
    return loaded


def _normal(loaded: _Settings, path: Path) -> _Settings:
    """Return the keys of NNI's version 3, in snake case."""
    document: _Settings = {}
    for key, value in loaded.items():
        name = snake(str(key))
        document[_OLD_KEYS.get(name, name)] = value
    trial = document.pop("trial", {}) or {}
    for key, value in trial.items():
        name = snake(str(key))
        if name not in _OLD_TRIAL_KEYS:
            raise _unknown(f"trial.{key}", list(_OLD_TRIAL_KEYS), path)
        document[_OLD_TRIAL_KEYS[name]] = value
    if document.pop("use_annotation", False):
        raise HeaderError(
            f"{path.name} has useAnnotation: the search space stands in comments of the code.",
            "Expected searchSpace or searchSpaceFile.",
            "Write the search space into the file, and get_next_parameter() into the code.",
        )
    return {key: value for key, value in document.items() if key not in _NEEDLESS and value is not None}


def _read_search_space(document: _Settings, path: Path) -> None:
    file = document.pop("search_space_file", None)
    if file is None:
        return
    space = path.parent / str(file)
    try:
        document["search_space"] = json.loads(space.read_text())
    except (OSError, ValueError) as error:
        raise HeaderError(
            f"{space} cannot be read: {error}", f"{path.name} names it as its search space, in JSON.", "Correct it."
        ) from error


def _read_algorithms(document: _Settings, found: NniExperiment, path: Path) -> None:
    tuner = _part(document, "tuner", "builtin_tuner_name")
    if document.pop("advisor", None):
        found.notes.append("Its advisor becomes tuner tpe with early_stop hyperband.")
        found.settings["early_stop"] = "hyperband"
    arguments = tuner.get("class_args") or {}
    name = str(tuner.get("name", "tpe" if document.get("search_space") else "random"))
    if name.lower() not in _TUNERS:
        raise _unknown(f"tuner {name}", list(_TUNERS), path)
    found.settings["tuner"] = _TUNERS[name.lower()]
    if found.settings["tuner"] != name.lower().removesuffix("tuner").replace("gridsearch", "grid"):
        found.notes.append(f"Its tuner {name} becomes {found.settings['tuner']}.")
    found.settings["objective"] = f"{arguments.pop('optimize_mode', 'maximize')} default"
    found.settings["seed"] = arguments.pop("seed", None)
    if arguments:
        found.notes.append(f"Without a counterpart are its tuner's {', '.join(map(str, arguments))}.")
    assessor = _part(document, "assessor", "builtin_assessor_name")
    if assessor:
        rule = str(assessor.get("name", ""))
        if rule.lower() not in _ASSESSORS:
            raise _unknown(f"assessor {rule}", list(_ASSESSORS), path)
        start = (assessor.get("class_args") or {}).get("start_step", 0)
        found.settings["early_stop"] = {"rule": _ASSESSORS[rule.lower()], "warmup_steps": start}


def _part(document: _Settings, key: str, old_name: str) -> _Settings:
    part = {snake(str(name)): value for name, value in (document.pop(key, None) or {}).items()}
    if old_name in part:
        part["name"] = part.pop(old_name)
    return part


def _read_service(document: _Settings, found: NniExperiment, path: Path) -> None:
    service = document.pop("training_service", None) or {}
    service = {snake(str(key)): value for key, value in service.items()}
    platform = str(service.pop("platform", document.pop("platform", "local")))
    old = document.pop(f"{platform}_config", None) or {}
    service |= {snake(str(key)): value for key, value in old.items()}
    if "image" in document:
        service["image"] = document.pop("image")
    machines = service.pop("machine_list", document.pop("machine_list", []))
    gpus = service.pop("trial_gpu_number", document.pop("trial_gpu_number", None))
    if gpus is not None:
        found.settings["resources"] = {"gpus": gpus}
    for key in ("reuse_mode", "trial_command", "trial_code_directory", "nni_manager_ip", "debug"):
        service.pop(key, None)
    if platform == "local":
        found.settings["local"] = {_LOCAL_OPTIONS[key]: service.pop(key) for key in _LOCAL_OPTIONS if key in service}
        found.settings["local"] = found.settings["local"] or None
    elif platform == "remote":
        found.settings["backend"] = {"type": "ssh", "hosts": list(map(_host, machines))}
        found.notes.append("Its machines become hosts of SSH; keys are those of your ssh_config and agent.")
    elif platform in SERVICES:
        read_service(SERVICES[platform], service, found.settings, found.notes, found.folder)
    else:
        raise HeaderError(
            f"{path.name} runs on {platform}.",
            f"An import runs on local, remote (SSH) or {', '.join(SERVICES)}.",
            "Describe the place once (%autotrain backends add), and set platform: local and --backend NAME.",
        )
    if service:
        found.notes.append(f"Without a counterpart are its training service's {', '.join(service)}.")


def _host(machine: Mapping[str, object]) -> str | _Settings:
    known = {snake(str(key)): value for key, value in machine.items()}
    host: _Settings = {"host": known.get("host", known.get("ip"))}
    if user := known.get("user", known.get("username")):
        host["user"] = user
    if port := known.get("port"):
        host["port"] = port
    return host


def _read_limits(document: _Settings, found: NniExperiment) -> None:
    if duration := document.pop("max_experiment_duration", None):
        found.settings["budget"] = {"time": duration}
        document.setdefault("max_trial_number", _NO_LIMIT)


def _unknown(key: str, known: list[str], path: Path) -> HeaderError:
    near = closest_match(key.rpartition(" ")[2], known)
    return HeaderError(
        f"{path.name}: {key} has no counterpart here.",
        f"Did you mean {near}?" if near else f"Known are {', '.join(known)}.",
        "Change that line of the file.",
    )
