"""The identity of a process."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from jupyter_autotrain.agent import system
from jupyter_autotrain.agent.system import linux, portable
from jupyter_autotrain.agent.system.process_identity import ProcessIdentity, is_gone

OURS = ("system", "system.process_identity", "system.common", "system.linux")
NO_PID = 1 << 22  # the kernel gives smaller ones only


@pytest.fixture(params=[linux, portable], ids=["linux", "portable"])
def source(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where processes are looked at: `/proc`, or what stands in for it where there is none."""
    for name in ("look", "boot_id", "START_TOLERANCE_S"):
        monkeypatch.setattr(system, name, getattr(request.param, name))


@pytest.mark.usefixtures("source")
def test_an_identity_is_true_for_one_process_only() -> None:
    me = ProcessIdentity.of(os.getpid())
    assert me.is_alive()
    assert not ProcessIdentity(me.pid, me.created_s - 10.0, me.boot_id).is_alive()
    assert not ProcessIdentity(me.pid, me.created_s, "another boot").is_alive()
    assert not ProcessIdentity(NO_PID, me.created_s, me.boot_id).is_alive()


@pytest.mark.usefixtures("source")
def test_a_process_that_has_ended_is_identified_until_it_is_reaped_but_is_not_alive() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        identity = ProcessIdentity.of(child.pid)
        assert identity.is_alive()
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        assert ProcessIdentity.of(child.pid) == identity
        assert not identity.is_alive()
    assert not identity.is_alive()


@pytest.mark.usefixtures("source")
def test_a_process_that_does_not_exist_has_no_identity() -> None:
    with pytest.raises(OSError, match="No such") as caught:
        ProcessIdentity.of(NO_PID)
    assert is_gone(caught.value)


def test_an_identity_is_the_same_after_a_round_trip_through_json() -> None:
    me = ProcessIdentity.of(os.getpid())
    assert ProcessIdentity.from_json(me.to_json()) == me
    assert len({me, ProcessIdentity.of(os.getpid())}) == 1


@pytest.mark.parametrize("value", [None, 7, [], [1, 2.0], ["1", 2.0, "boot"], [1, 2.0, 3], {"pid": 1}])
def test_what_is_no_identity_is_read_as_none(value: object) -> None:
    assert ProcessIdentity.from_json(value) is None


def test_importing_it_loads_no_other_module_but_errno() -> None:
    code = """if True:
        import sys
        import jupyter_autotrain.agent
        before = set(sys.modules)
        import jupyter_autotrain.agent.system.process_identity
        print(*sorted(set(sys.modules) - before))
    """
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    ours = {name for name in found if name.startswith("jupyter_autotrain.agent.")}
    assert set(found) - ours <= {"__future__", "errno"}
    assert ours <= {f"jupyter_autotrain.agent.{name}" for name in OURS}
