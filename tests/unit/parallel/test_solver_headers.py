"""Each solver module opens with its mathematics, and names the test that holds it to its oracle."""

import ast
from pathlib import Path

import pytest

import jupyter_autotrain
from jupyter_autotrain.parallel import cost, search

ROOT = Path(jupyter_autotrain.__file__).parents[1]
SECTIONS = ("Variables", "Objective", "Constraints", "Recurrence", "Complexity", "Source", "Oracle")
SOLVERS = {
    search: (
        "factors/elimination",
        "factors/elimination_order",
        "factors/lagrangian",
        "factors/lagrangian_branch_and_bound",
        "stage/folding",
        "stage/partition",
        "stage/partition_bounds",
        "stage/partition_solver",
        "stage/pipeline_problem",
        "stage/stage_problem",
        "stage/unrolled_solver",
        "outer/branch_and_bound",
        "outer/fallback_plan",
        "outer/device_subset_search",
        "outer/heuristic",
        "outer/local_search",
        "outer/node",
    ),
    cost: ("compute_lower_bound",),
}
FILES = [Path(package.__file__).parent / f"{name}.py" for package, names in SOLVERS.items() for name in names]


def header(file):
    return ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_solver_opens_with_its_sections_in_order(file):
    opened = [line.partition(":")[0] for line in header(file).splitlines()]
    assert [word for word in opened if word in SECTIONS] == list(SECTIONS)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_oracle_that_a_solver_names_exists_and_asserts_something(file):
    (named,) = (line.partition(": ")[2] for line in header(file).splitlines() if line.startswith("Oracle: "))
    path, _, function = named.partition("::")
    tests = {node.name: node for node in ast.parse((ROOT / path).read_text(encoding="utf-8")).body if is_test(node)}
    assert function in tests, f"{path} has no {function}"
    assert any(isinstance(node, ast.Assert) for node in ast.walk(tests[function]))


def is_test(node):
    return isinstance(node, ast.FunctionDef) and node.name.startswith("test_")


@pytest.mark.parametrize("package", ["factors", "stage", "outer"])
def test_every_module_with_a_recurrence_is_held_to_an_oracle(package):
    folder = Path(search.__file__).parent / package
    assert [file for file in folder.glob("*.py") if "Recurrence:" in header(file) and file not in FILES] == []
