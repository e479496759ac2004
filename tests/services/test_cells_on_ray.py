"""From a cell to a real Ray head."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.labs.ray_lab import RayLab
from tests.services.notebook import notebook
from tests.services.searches import search_with_a_killed_manager


@pytest.mark.long
def test_a_search_from_a_cell_runs_as_jobs_of_ray_and_a_killed_manager_loses_nothing(
    ray: RayLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"type": "ray", "address": ray.address, "python": sys.executable}
    with notebook(tmp_path, monkeypatch, options) as made:
        search_with_a_killed_manager(made, tmp_path)
