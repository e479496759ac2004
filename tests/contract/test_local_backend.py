from __future__ import annotations

import dataclasses
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoints
from pathlib import Path

import pytest

from jupyter_autotrain import backends
from jupyter_autotrain.agent import system, wire
from jupyter_autotrain.agent.system import linux, nvidia
from jupyter_autotrain.backends.local import LocalBackend
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import NodePlacement, Placement, Resources, TrialSpec
from jupyter_autotrain.errors import BackendError
from jupyter_autotrain.testing import trial_of, wait_until

GOLDEN = Path(__file__).parents[1] / "golden" / "local_render.json"


def local(tmp_path: Path) -> LocalBackend:
    return LocalBackend(Profile("local", "local"), BackendContext(Home(tmp_path / "home")))


def nvidia_smi(
    folder: Path, monkeypatch: pytest.MonkeyPatch, users: Mapping[str, Sequence[int]], memory: str = "81920"
) -> None:
    """Let the driver's program list GPUs, each with the processes that compute on it."""
    gpus = [f"{index}, {name}, Fake A100, {memory}, {memory}" for index, name in enumerate(users)]
    used = []
    for name, pids in users.items():
        used += [f"{name}, {pid}" for pid in pids]
    answers = {"--query-gpu=index": gpus, "--query-compute-apps": used}
    cases = "".join(f"  {question}*) printf '%s\\n' {shlex.join(lines)};;\n" for question, lines in answers.items())
    program = folder / "nvidia-smi"
    program.write_text(f'#!/bin/sh\ncase "$1" in\n{cases}esac\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    nvidia.topology.cache_clear()
    nvidia.pcie.cache_clear()


def test_what_local_would_run_is_as_it_was(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "INTERPRETER_FLAGS", linux.INTERPRETER_FLAGS)
    trial = TrialSpec(
        "20261121-digits", 3, 2, "5ha256", params={"lr": 0.01, "layers": 2}, seed=11, objective="val_acc",
        resources=Resources(cpus=1.5, memory_bytes=2_000_000_000, gpus=1), timeout_s=60.0,
        env={"MODE": "fast"}, secrets=("TOKEN",), returns=("model",), resume_attempt=1,
    )  # fmt: skip
    backend = LocalBackend(Profile("local", "local"), BackendContext(Home(Path("/home/ada/at"))))
    plan = backend.render(trial, Placement((NodePlacement("here", ("GPU-1",)),)))
    shown = dataclasses.asdict(plan)
    shown["argv"] = [Path(part).name if part in {sys.executable, plan.argv[3]} else part for part in plan.argv]
    shown["argv"][0] = "python"
    shown["files"] = {name: text.replace(sys.executable, "/usr/bin/python3") for name, text in plan.files.items()}
    text = json.dumps(shown, indent=1, sort_keys=True) + "\n"
    if request.config.getoption("--golden-update"):
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_both_built_in_backends_are_found_by_their_entry_points() -> None:
    assert {"local", "debug"} <= set(backends.type_names())


def test_a_backend_installed_while_the_notebook_runs_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    assert "moon" not in backends.type_names()
    installed = tmp_path / "moonbase-1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: moonbase\nVersion: 1.0\n")
    (installed / "entry_points.txt").write_text(f"[{backends.GROUP}]\nmoon = moonbase:Moon\n")
    assert "moon" in backends.type_names()


def test_a_backend_that_was_not_found_for_lack_of_descriptors_is_found_the_next_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backends._scan.cache_clear()
    with monkeypatch.context() as lacking:
        lacking.setattr(backends, "entry_points", lambda: EntryPoints(()))
        with pytest.raises(BackendError, match="There is no backend 'local'"):
            backends.options_model("local")
    assert backends.options_model("local").model_fields


def test_an_unknown_backend_names_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="Did you mean 'local'"):
        backends.create(Profile("locla", "locla"), BackendContext(Home(tmp_path)))


def test_gpus_are_told_with_memory_and_whether_a_stranger_uses_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvidia_smi(tmp_path, monkeypatch, {"GPU-1": [], "GPU-2": [1]})
    first, second = local(tmp_path).discover().nodes[0].accelerators
    assert (first.id, first.kind, first.memory_bytes, first.busy) == ("GPU-1", "Fake A100", 80 << 30, False)
    assert (second.index, second.id, second.busy) == (1, "GPU-2", True)


def test_a_gpu_used_by_a_trial_of_ours_is_not_busy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = subprocess.Popen(
        [sys.executable, "-c", "print(flush=True); input()"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={wire.TRIAL_VARIABLE: "/x"},
    )  # fmt: skip
    assert ours.stdout is not None
    ours.stdout.readline()
    nvidia_smi(tmp_path, monkeypatch, {"GPU-1": [ours.pid], "GPU-2": [ours.pid, 1]})
    try:
        first, second = local(tmp_path).discover().nodes[0].accelerators
    finally:
        ours.communicate(b"\n")
    assert (first.busy, second.busy) == (False, True)


def test_without_a_driver_there_are_no_gpus_and_probe_says_so(tmp_path: Path) -> None:
    backend = local(tmp_path)
    assert backend.discover().nodes[0].accelerators == ()
    assert "no GPUs seen" in backend.probe().reason


def test_memory_that_the_driver_does_not_tell_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia_smi(tmp_path, monkeypatch, {"GPU-1": []}, memory="[N/A]")
    assert local(tmp_path).discover().nodes[0].accelerators[0].memory_bytes is None


def test_equal_gpus_are_counted_in_the_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvidia_smi(tmp_path, monkeypatch, {"a": [], "b": []})
    assert "2 x Fake A100" in local(tmp_path).probe().reason


def test_a_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path) -> None:
    trial = trial_of(Home(tmp_path / "home"), "")
    (tmp_path / "home" / "experiments" / "e1" / "trials").write_text("")
    with pytest.raises(BackendError, match="cannot be started"):
        local(tmp_path).submit(trial, Placement(), {})


def test_a_trial_whose_supervisor_cannot_begin_is_an_error_at_once(tmp_path: Path) -> None:
    trial = trial_of(Home(tmp_path / "home"), "")
    directory = Home(tmp_path / "home").trial("e1", 1, 1)
    (directory / wire.LOCK_FILE).mkdir(parents=True)
    with pytest.raises(BackendError, match="lock"):
        local(tmp_path).submit(trial, Placement(), {})


def test_a_crash_between_writing_and_starting_is_made_good_by_submitting_again(tmp_path: Path) -> None:
    trial = trial_of(Home(tmp_path / "home"), "")
    directory = Home(tmp_path / "home").trial("e1", 1, 1)
    directory.mkdir(parents=True)
    (directory / wire.TRIAL_FILE).write_text('{"half": ')
    (directory / wire.LOCK_FILE).write_text("")
    ref = local(tmp_path).submit(trial, Placement(), {})
    assert json.loads((directory / wire.STATUS_FILE).read_text())["wire"] == wire.VERSION
    local(tmp_path).cancel(ref, 1.0)


def test_an_interpreter_that_does_not_exist_is_the_reason(tmp_path: Path) -> None:
    backend = local(tmp_path)
    ref = backend.submit(trial_of(Home(tmp_path / "home"), "", python="/no/such/python"), Placement(), {})
    wait_until(lambda: backend.poll([ref])[0].state.is_final, "the end")
    assert "/no/such/python cannot be started: No such file" in backend.poll([ref])[0].reason
