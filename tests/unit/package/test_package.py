"""Tests of what `import jupyter_autotrain` costs and offers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import jupyter_autotrain

ROOT = Path(__file__).parents[3]
HEAVY = ("torch", "optuna", "ipywidgets", "kubernetes", "numpy", "pydantic", "IPython", "sqlite3")


def fresh(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout


def test_importing_the_package_costs_less_than_0_3_s_of_cpu() -> None:
    code = "import time; b = time.process_time(); import jupyter_autotrain; print(time.process_time() - b)"
    assert min(float(fresh(code)) for _ in range(3)) < 0.3


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = fresh("import sys, jupyter_autotrain; print(*sys.modules)").split()
    assert not set(HEAVY) & set(loaded)


def test_loading_the_extension_loads_no_numerical_library() -> None:
    code = (
        "import sys; from IPython.core.interactiveshell import InteractiveShell as Shell; "
        "Shell.instance().run_line_magic('load_ext', 'jupyter_autotrain'); print(*sys.modules)"
    )
    assert not {"numpy", "torch", "optuna", "pandas", "scipy"} & set(fresh(code).split())


def test_the_public_names_are_the_documented_ones() -> None:
    documented = re.findall(
        r"^\| `at\.(\w+)", (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(documented) == sorted(jupyter_autotrain.__all__)
    assert len(jupyter_autotrain.__all__) <= 15


def test_every_public_name_can_be_had() -> None:
    assert all(getattr(jupyter_autotrain, name) is not None for name in jupyter_autotrain.__all__)


def test_every_path_in_the_architecture_page_exists() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"`([\w./-]+/[\w./-]*)`", text))
    assert len(paths) > 20
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_the_front_end_and_the_package_have_one_version() -> None:
    package = (ROOT / "labextension" / "package.json").read_text(encoding="utf-8")
    assert f'"version": "{jupyter_autotrain.__version__}"' in package
    assert f'version = "{jupyter_autotrain.__version__}"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")


def test_a_handle_finds_its_view_without_the_extension_loaded() -> None:
    code = (
        "from jupyter_autotrain.client import Experiment; from jupyter_autotrain.core import table; "
        "print(issubclass(Experiment, table.Displayable), table.show.__module__)"
    )
    assert fresh(code).split() == ["True", "jupyter_autotrain.core.table"]
