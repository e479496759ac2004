"""Amount to try: half a minute in the suite, always the same; as much as asked, by chance, in the soak."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

from jupyter_autotrain import manager
from jupyter_autotrain.core.home import Home

MORE = int(os.environ.get("AUTOTRAIN_FUZZ_TIMES", "0"))  # so many times what a test names; half of it by default


@pytest.fixture(scope="session")
def examples():
    """Return settings for a number of examples."""

    def scaled(number):
        return settings(
            max_examples=number * MORE or number // 2,
            derandomize=not MORE,
            deadline=None,
            database=None,
            suppress_health_check=[
                HealthCheck.too_slow,
                HealthCheck.data_too_large,
                HealthCheck.function_scoped_fixture,
            ],
        )

    return scaled


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return a home without a manager."""
    monkeypatch.setattr(manager, "ensure", lambda home: None)
    monkeypatch.setattr(manager, "notify", lambda home, message=None: True)
    return Home(tmp_path / "home")
