"""A real Ray head, made once; every test that names it runs in its network."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.labs import ray_lab


def _lab(nodes: int) -> Iterator[ray_lab.RayLab]:
    reason = ray_lab.missing()
    if reason:
        pytest.skip(reason)
    folder = Path(tempfile.mkdtemp(prefix="at-ray-"))
    head = ray_lab.RayLab(folder, nodes=nodes)
    yield head
    head.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def the_ray() -> Iterator[ray_lab.RayLab]:
    yield from _lab(1)


@pytest.fixture
def ray(the_ray: ray_lab.RayLab) -> Iterator[ray_lab.RayLab]:
    with the_ray.inside():
        yield the_ray


@pytest.fixture(scope="session")
def the_ray_of_two() -> Iterator[ray_lab.RayLab]:
    yield from _lab(2)


@pytest.fixture
def ray_of_two(the_ray_of_two: ray_lab.RayLab) -> Iterator[ray_lab.RayLab]:
    with the_ray_of_two.inside():
        yield the_ray_of_two
