from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from jupyter_autotrain.worker import causes, limits
from jupyter_autotrain.worker.failure import Failure

HERE = str(Path(__file__))


def failure_of(action: Callable[[], object], script: str = HERE, source_map: tuple[str, ...] = ()) -> Failure:
    try:
        action()
    except BaseException as error:  # noqa: BLE001
        return Failure(error, script, source_map, "/usr/bin/python3")
    raise AssertionError("nothing was raised")


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

    assert "KeyError: 'inner'" in failure_of(act).traceback


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


def test_exit_causes_are_in_plain_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "SIGKILL" in causes.of_exit({}, 9, 0, None).reason
    assert causes.of_exit({}, 0, 0, None).state == "SUCCEEDED"
    assert "exit code 4" in causes.of_exit({}, 4 << 8, 0, None).reason
    told = causes.of_exit({"resources": {"memory_bytes": 200_000_000}}, 9, 1, 199_000_000)
    assert "used 199 MB of 200 MB allowed" in told.reason
    assert "batch size" in told.reason


def test_a_crash_after_the_cell_had_ended_well_is_told_but_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("outcome.json").write_text('{"state": "SUCCEEDED", "reason": ""}')
    told = causes.of_exit({}, 11, 0, None)
    assert told.state == "SUCCEEDED"
    assert "SIGSEGV" in told.reason


def test_input_in_the_background_is_explained() -> None:
    assert "nobody to ask" in failure_of(raiser(EOFError("EOF when reading a line"))).reason


def test_a_death_by_memory_in_a_child_is_told_as_such_when_the_cell_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    causes.refuse("RuntimeError: DataLoader worker killed")
    assert "Out of memory" in causes.of_exit({}, 1 << 8, 1, 0).reason
    assert "DataLoader" in causes.of_exit({}, 1 << 8, 0, 0).reason


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (200_000_000, "200 MB"), (1_500_000_000, "1.5 GB"), (25e12, "25 TB")],
)
def test_sizes_are_written_as_people_do(count: int, text: str) -> None:
    assert limits.size(int(count)) == text
