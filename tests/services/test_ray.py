"""Faults of Ray's Jobs interface, by a double of it; see `test_ray_contract` for a real head."""

from __future__ import annotations

import sys

import pytest

from jupyter_autotrain.agent.json import JsonObject
from jupyter_autotrain.backends.services.ray.backend import RayBackend
from tests.labs.ray_double import TOKEN, RayDouble
from tests.labs.service_jobs import JobRunner
from tests.services.on_a_double import OnADouble, ServiceFaults


class OnRay(OnADouble):
    """Backends on one double of a Ray head."""

    backend_type = RayBackend
    kind = "ray"
    double: RayDouble

    def make_double(self, runner: JobRunner) -> RayDouble:
        self.login.write_text(f"{TOKEN}\n")
        return RayDouble(runner)

    def options(self) -> JsonObject:
        return {
            "address": self.double.address, "python": sys.executable, "login_file": str(self.login),
            "workdir": str(self.storage.parent),
        }  # fmt: skip


@pytest.mark.long
class TestFaults(OnRay, ServiceFaults):
    """Faults of any service."""

    def expire_login(self) -> None:
        self.double.token = "another"

    def renew_login(self) -> None:
        self.double.token = TOKEN


del OnADouble, ServiceFaults
