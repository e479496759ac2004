"""A real Ray head, made once; every test that names it runs in its network."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.labs import ray_lab


@pytest.fixture(scope="session")
def the_ray() -> Iterator[ray_lab.RayLab]:
    reason = ray_lab.missing()
    if reason:
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="at-ray-"))
    head = ray_lab.RayLab(folder)
    yield head
    head.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def ray(the_ray: ray_lab.RayLab) -> Iterator[ray_lab.RayLab]:
    with the_ray.inside():
        yield the_ray
