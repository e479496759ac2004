"""Tests of what a script imports before all else, and what is left to its run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from jupyter_autotrain.agent.pool import needed_imports


def of(folder: Path, script: str, modules: Mapping[str, str] | None = None) -> list[str]:
    (folder / "main.py").write_text(script)
    for name, code in (modules or {}).items():
        path = folder / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(code)
    return needed_imports.of_script(str(folder / "main.py"), str(folder / "files"))


@pytest.mark.parametrize(
    ("script", "found"),
    [
        ("import numpy as np, torch.nn", ["numpy", "torch.nn"]),
        ("from torch import nn, optim as o", ["torch", "torch:nn", "torch:optim"]),
        ("from torch import *", ["torch"]),
        ("try:\n    import fast\nexcept ImportError:\n    import slow", ["fast"]),
        ("if USE:\n    import tensorflow\ndef f():\n    import jax", []),
        ("from . import mine\nfrom __future__ import annotations", []),
        ("import jupyter_autotrain as at\nfrom jupyter_autotrain import report", []),
        ("import os, sys, time, json", []),
        ("this is no Python", []),
    ],
)
def test_only_what_is_imported_in_any_case_counts(tmp_path: Path, script: str, found: list[str]) -> None:
    assert of(tmp_path, script) == found


def test_imports_of_modules_that_travel_count_in_place_of_these(tmp_path: Path) -> None:
    script = "import model, pandas\nfrom parts.blocks import Block"
    own = {
        "model.py": "import torch\nimport model",
        "parts/__init__.py": "import scipy",
        "parts/blocks.py": "import einops",
    }
    assert of(tmp_path, script, own) == ["pandas", "torch", "scipy", "einops"]


def test_a_script_that_is_gone_imports_nothing(tmp_path: Path) -> None:
    assert needed_imports.of_script(str(tmp_path / "main.py"), str(tmp_path)) == []


def test_modules_that_need_no_import_are_loaded_in_every_warm_process() -> None:
    look = "from jupyter_autotrain.agent.pool import needed_imports, warm_process\nimport sys\n"
    look += "print(sorted(needed_imports._THERE - set(sys.modules)))"
    done = subprocess.run([sys.executable, "-S", "-c", look], stdout=subprocess.PIPE, text=True, check=True, env={})
    assert done.stdout == "[]\n"
