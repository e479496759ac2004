"""A trial whose memory somebody else limits, as a container's group does under version 1 of control groups.

There the kernel ends one process of the group and no other: the supervisor lives, and has to tell why its rank died.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.agent.system import cgroup_setup
from jupyter_autotrain.agent.system.cgroups import CgroupLimits, ControlGroups, write_control_file

LIMIT_BYTES = 400 << 20
RUN = """
import json, sys, time
from pathlib import Path
from jupyter_autotrain.backends.local.backend import LocalBackend
from jupyter_autotrain.core.backend import BackendContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.profile import Profile
from jupyter_autotrain.core.spec import Placement
from jupyter_autotrain.testing.bundles import trial_of
home = Home(Path(sys.argv[1]))
backend = LocalBackend(Profile("local", "local", {}), BackendContext(home))
ref = backend.submit(trial_of(home, sys.argv[2]), Placement(), {})
while not (status := backend.poll([ref])[0]).state.is_final:
    time.sleep(0.05)
backend.close()
print(json.dumps([status.state, status.reason]))
"""


@pytest.fixture
def group() -> Iterator[ControlGroups]:
    made = cgroup_setup.create(CgroupLimits(LIMIT_BYTES, None, 1000))
    try:
        if "memory" not in made.limited:
            pytest.skip("no memory group can be made here")
        write_control_file(0, made.folders["memory"], "memory.oom.group")
        yield made
    finally:
        made.remove()


def run_in(group: ControlGroups, home: Path, code: str) -> tuple[str, str]:
    """Return how a trial ends whose manager, and so its supervisor, is in a group."""
    enter = 'for group in $GROUPS_OF_TRIAL; do echo 0 > "$group/cgroup.procs" || exit 77; done; exec "$@"'
    done = subprocess.run(
        ["/bin/sh", "-c", enter, "sh", sys.executable, "-c", RUN, str(home), code],
        env={"PATH": "/usr/bin:/bin", "GROUPS_OF_TRIAL": " ".join(group.paths())}, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip("no process can be moved into a group here")
    assert done.returncode == 0, done.stderr
    state, reason = json.loads(done.stdout)
    return state, reason


@pytest.mark.fault
def test_a_rank_that_the_kernel_kills_for_the_memory_of_the_group_around_it_is_out_of_memory(
    group: ControlGroups, tmp_path: Path
) -> None:
    state, reason = run_in(group, tmp_path / "home", f"kept = b'x' * {2 * LIMIT_BYTES}")
    assert state == "FAILED"
    assert reason.startswith("Out of memory: the trial went over its limit.")


@pytest.mark.fault
def test_a_rank_that_somebody_kills_is_not_out_of_memory(group: ControlGroups, tmp_path: Path) -> None:
    state, reason = run_in(group, tmp_path / "home", "import os\nos.kill(os.getpid(), 9)")
    assert state == "FAILED"
    assert "signal 9 (SIGKILL)" in reason
