from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_autotrain.agent.ranks.failure import Failure, Script
from jupyter_autotrain.agent.supervisor import exit_causes
from jupyter_autotrain.agent.supervisor.exit_causes import WorkerEnd
from jupyter_autotrain.agent.trial import termination_causes

HERE = str(Path(__file__))


def failure_of(
    action: Callable[[], object],
    script: str = HERE,
    source_map: tuple[str, ...] = (),
    *,
    work: Path | str = "",
    cwd: Path | str = "",
    step: int = -1,
) -> Failure:
    try:
        action()
    except BaseException as error:  # noqa: BLE001
        return Failure(error, Script(script, source_map, str(work), str(cwd)), "/usr/bin/python3", step)
    raise AssertionError("nothing was raised")


CALLED = failure_of.__code__.co_firstlineno + 10
"""Where `failure_of` calls what it is given."""


def raiser(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def test_the_last_line_of_the_cell_is_told_also_when_a_library_raises() -> None:
    told = failure_of(lambda: subprocess.run(["/no/such/program"], check=True))
    assert "subprocess.run" in told.cell_line
    assert "FileNotFoundError" in told.reason


def test_lines_are_told_by_their_cell() -> None:
    number = raiser.__code__.co_firstlineno + 2
    source_map = ("",) * (number - 1) + ("cell 7:3",)
    assert failure_of(raiser(ValueError("no")), source_map=source_map).cell_line == "cell 7, line 3: raise error"


def test_a_syntax_error_is_told_by_its_line(tmp_path: Path) -> None:
    script = tmp_path / "main.py"
    script.write_text("x = 1\nif x\n")
    told = failure_of(lambda: compile(script.read_text(), str(script), "exec"), str(script), ("cell 2:1", "cell 2:2"))
    assert told.cell_line == "cell 2, line 2: if x"


def test_the_cause_of_an_exception_is_told_too() -> None:
    def act() -> None:
        try:
            {}["inner"]
        except KeyError as error:
            raise RuntimeError("outer") from error

    told = failure_of(act, step=40)
    assert "KeyError: 'inner'" in told.traceback
    number = act.__code__.co_firstlineno + 4
    assert told.reason == (
        "RuntimeError: outer (caused by KeyError: 'inner'). "
        f'At line {number}: `raise RuntimeError("outer") from error`, called from line {CALLED}, after step 40.'
    )


def test_the_end_of_a_long_chain_of_causes_is_told() -> None:
    def act() -> None:
        try:
            try:
                int("seven")
            except ValueError:
                {}["inner"]
        except KeyError as error:
            raise RuntimeError("outer") from error

    assert "(caused by ValueError: invalid literal for int() with base 10: 'seven')" in failure_of(act).reason


def test_a_hidden_cause_stays_hidden_and_a_circle_of_causes_ends() -> None:
    def hidden() -> None:
        try:
            {}["inner"]
        except KeyError:
            raise RuntimeError("outer") from None

    def circle() -> None:
        first = RuntimeError("first")
        second = RuntimeError("second")
        first.__cause__ = second
        second.__cause__ = first
        raise first

    assert "caused by" not in failure_of(hidden).reason
    assert "caused by RuntimeError: second" in failure_of(circle).reason


def test_the_last_own_line_may_stand_in_a_module_beside_the_notebook(tmp_path: Path) -> None:
    module = tmp_path / "helpers.py"
    module.write_text("def fit():\n    return [][3]\n")
    names: dict[str, Callable[[], object]] = {}
    exec(compile(module.read_text(), str(module), "exec"), names)
    told = failure_of(lambda: [names["fit"]()], work=tmp_path)
    assert "At helpers.py, line 2: `return [][3]`, called from line" in told.reason
    assert 'names["fit"]()' in told.cell_line


def test_a_file_beside_the_notebook_that_was_not_sent_is_told_by_its_ship_line(tmp_path: Path) -> None:
    work = tmp_path / "work"
    cwd = tmp_path / "notebook"
    for folder in (work, cwd / "data sets"):
        folder.mkdir(parents=True)
    (cwd / "data sets" / "x.csv").write_text("1")
    (cwd / "weights.pt").write_text("1")

    def wrapped() -> None:
        try:
            (work / "data sets" / "x.csv").read_text()
        except FileNotFoundError as error:
            raise RuntimeError("no data") from error

    line = "ship: ['data sets/x.csv']"
    for act in ((work / "data sets" / "x.csv").read_text, wrapped):
        assert failure_of(act, work=work, cwd=cwd).reason.endswith(
            f" data sets/x.csv lies beside the notebook but was not sent: add to the header `{line}`"
        )
    library = failure_of(raiser(OSError("Can't load weights from './weights.pt'")), work=work, cwd=cwd)
    assert library.reason.endswith("add to the header `ship: [weights.pt]`")


def test_a_missing_file_that_does_not_lie_beside_the_notebook_gets_no_ship_line(tmp_path: Path) -> None:
    work = tmp_path / "work"
    cwd = tmp_path / "notebook"
    work.mkdir()
    cwd.mkdir()
    (cwd / "train").mkdir()
    assert "ship" not in failure_of((work / "x.csv").read_text, work=work, cwd=cwd).reason
    assert "ship" not in failure_of(raiser(ValueError("no mode 'train'")), work=work, cwd=cwd).reason
    assert "ship" not in failure_of((tmp_path / "elsewhere.csv").read_text, work=work, cwd=cwd).reason
    # Where the notebook's folder cannot be seen, it can only be guessed.
    away = failure_of((work / "x.csv").read_text, work=work, cwd=tmp_path / "gone").reason
    assert away.endswith("If it lies beside the notebook, add to the header: `ship: [x.csv]`")


def test_a_missing_module_beside_the_notebook_is_to_be_sent_not_installed(tmp_path: Path) -> None:
    (tmp_path / "layers.py").write_text("")
    error = ModuleNotFoundError("No module named 'layers'", name="layers")
    told = failure_of(raiser(error), cwd=tmp_path)
    assert "ship: [layers.py]" in told.reason
    assert "pip install" not in told.reason


@pytest.mark.parametrize(
    ("name", "package"), [("cv2", "opencv-python"), ("sklearn.svm", "scikit-learn"), ("einops", "einops")]
)
def test_a_missing_module_is_told_by_the_package_that_brings_it(name: str, package: str) -> None:
    told = failure_of(raiser(ModuleNotFoundError(f"No module named {name!r}", name=name)))
    assert told.kind == "import"
    assert told.reason.endswith(f"/usr/bin/python3 -m pip install {package}")


def test_memory_of_the_machine_and_of_the_gpu_are_told_apart() -> None:
    gpu = type("OutOfMemoryError", (RuntimeError,), {})
    assert "Out of memory." in failure_of(raiser(MemoryError())).reason
    assert "Out of GPU memory." in failure_of(raiser(gpu("CUDA out of memory"))).reason


def test_a_very_long_message_is_cut() -> None:
    assert len(failure_of(raiser(ValueError("x" * 10_000))).reason) < 800


def end(code: int, outcome: dict[str, object] | None = None, rank: int = 0, ended_s: float = 0.0) -> WorkerEnd:
    return WorkerEnd(rank, code, True, outcome or {}, ended_s)


def told_of(
    *ends: WorkerEnd, trial: dict[str, object] | None = None, oom_kills: int = 0, peak_bytes: int = 0
) -> termination_causes.Cause:
    return exit_causes.of_workers(trial or {}, ends, len(ends) > 1, oom_kills, peak_bytes)


def test_exit_causes_are_in_plain_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "SIGKILL" in told_of(end(-9)).reason
    assert told_of(end(0)).state == "SUCCEEDED"
    assert "exit code 4" in told_of(end(4)).reason
    told = told_of(end(-9), trial={"resources": {"memory_bytes": 200_000_000}}, oom_kills=1, peak_bytes=199_000_000)
    assert "used 199 MB of 200 MB allowed" in told.reason
    assert "batch size" in told.reason


def test_a_crash_after_the_cell_had_ended_well_is_told_but_is_no_failure() -> None:
    told = told_of(end(-11, {"state": "SUCCEEDED", "reason": ""}))
    assert told.state == "SUCCEEDED"
    assert "SIGSEGV" in told.reason


def test_a_worker_that_said_nothing_is_told_by_its_last_words_on_stderr(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("stderr").write_text("first\nlibfoo: no license\n\n")
    assert "its stderr ends with: libfoo: no license" in told_of(end(4)).reason


def test_a_full_disk_is_the_reason_where_a_worker_left_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    full = os.statvfs_result((4096, 4096, 1000, 0, 0, 100, 50, 50, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    reason = told_of(end(120)).reason
    assert "exit code 120" in reason
    assert f"the disk of {Path.cwd()} is full (0 B of 4.1 MB free" in reason


@pytest.mark.parametrize("code", [0, 1])
def test_an_interpreter_that_is_no_python_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    monkeypatch.chdir(tmp_path)
    told = told_of(WorkerEnd(0, code, False, {}, 0.0), trial={"python": "/bin/true"})
    assert told.state == "FAILED"
    assert f"/bin/true ended with exit code {code} before the cell began" in told.reason


def failed(reason: str, at_s: float) -> dict[str, object]:
    return {"state": "FAILED", "reason": reason, "at_s": at_s}


WELL: dict[str, object] = {"state": "SUCCEEDED", "reason": ""}


def test_the_rank_that_failed_first_is_named_also_when_another_one_exited_first() -> None:
    consequence = end(1, failed("connection closed", 5.0), rank=0, ended_s=5.1)
    told = told_of(consequence, end(1, failed("ValueError: bad", 4.9), rank=1, ended_s=6.0), end(0, WELL, rank=2))
    assert (told.state, told.rank, told.reason) == ("FAILED", 1, "Rank 1 failed: ValueError: bad")


def test_a_kill_from_outside_goes_before_what_another_rank_reported_of_it() -> None:
    told = told_of(end(1, failed("connection closed", 5.0), rank=0), end(-9, rank=1, ended_s=7.0))
    assert told.reason.startswith("Rank 1 failed: Killed by signal 9 (SIGKILL).")


def test_what_a_later_rank_has_lost_is_told_when_all_ended_well() -> None:
    late: dict[str, object] = {"state": "SUCCEEDED", "reason": "Some reports were lost: disk full."}
    told = told_of(end(0, WELL), end(0, late, rank=1))
    assert (told.state, told.rank, told.reason) == ("SUCCEEDED", 0, "Rank 1: Some reports were lost: disk full.")


def test_input_in_the_background_is_explained() -> None:
    assert "cannot read input" in failure_of(raiser(EOFError("EOF when reading a line"))).reason


def test_a_death_by_memory_in_a_child_is_told_as_such_when_the_cell_fails() -> None:
    outcome: dict[str, object] = {"state": "FAILED", "reason": "RuntimeError: DataLoader worker killed"}
    assert "Out of memory" in told_of(end(1, outcome), oom_kills=1).reason
    assert "DataLoader" in told_of(end(1, outcome)).reason
