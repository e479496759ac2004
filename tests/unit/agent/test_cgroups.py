from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_autotrain.agent.supervisor.resource_limits import ResourceLimits
from jupyter_autotrain.agent.system import cgroup_setup, cgroups
from jupyter_autotrain.agent.system.cgroups import CgroupLimits, ControlGroups


def test_version_2_makes_the_group_beside_ours_as_systemd_lets_a_user_do(tmp_path: Path) -> None:
    (tmp_path / "user/app/kernel").mkdir(parents=True)
    (tmp_path / "user/app/cgroup.subtree_control").write_text("cpu memory pids")
    found = cgroup_setup._create_v2(f"{tmp_path}/user/app/kernel", CgroupLimits(1000, 0.5, 64), "trial")
    assert set(found.folders.values()) == {f"{tmp_path}/user/app/trial"}


def limit_files(folder: Path, names: str) -> None:
    folder.mkdir(parents=True)
    for name in names.split():
        (folder / name).write_text("")


def test_version_2_limits_are_written_in_its_own_words(tmp_path: Path) -> None:
    limit_files(tmp_path / "g", "memory.max memory.swap.max memory.oom.group cpu.max pids.max")
    made = cgroups.ControlGroups(2, dict.fromkeys(("memory", "cpu", "pids"), str(tmp_path / "g")))
    made.limit(CgroupLimits(1000, 0.5, 64))
    assert made.limited == {"memory", "cpu", "pids"}
    said = {path.name: path.read_text() for path in (tmp_path / "g").iterdir()}
    assert (said["memory.max"], said["memory.swap.max"], said["memory.oom.group"]) == ("1000", "0", "1")
    assert (said["cpu.max"], said["pids.max"]) == ("50000 100000", "64")


def test_version_1_limits_are_written_in_its_own_words(tmp_path: Path) -> None:
    names = "memory.limit_in_bytes memory.memsw.limit_in_bytes cpu.cfs_period_us cpu.cfs_quota_us pids.max"
    limit_files(tmp_path / "g", names)
    made = cgroups.ControlGroups(1, dict.fromkeys(("memory", "cpu", "pids"), str(tmp_path / "g")))
    made.limit(CgroupLimits(1000, 1.5, 64))
    said = {path.name: path.read_text() for path in (tmp_path / "g").iterdir()}
    assert said["memory.limit_in_bytes"] == said["memory.memsw.limit_in_bytes"] == "1000"
    assert (said["cpu.cfs_period_us"], said["cpu.cfs_quota_us"]) == ("100000", "150000")


def test_a_limit_that_is_refused_is_not_claimed(tmp_path: Path) -> None:
    made = cgroups.ControlGroups(1, {"memory": str(tmp_path / "gone"), "pids": str(tmp_path / "gone")})
    made.limit(CgroupLimits(1000, None, 64))
    assert made.limited == set()


def test_our_own_group_is_found_inside_a_container(tmp_path: Path) -> None:
    mountinfo = f"34 25 0:30 /docker/abc {tmp_path} rw - cgroup cgroup rw,memory\n"
    homes = cgroups.groups_of_process("self", mountinfo, "4:memory:/docker/abc/inner\n0::/\n")
    assert homes == {"memory": f"{tmp_path}/inner"}


def test_both_versions_at_once_are_told_apart() -> None:
    mountinfo = (
        "40 25 0:33 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"
        "41 25 0:34 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
        "42 25 0:35 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
    )
    homes = cgroups.groups_of_process("self", mountinfo, "8:pids:/a\n1:cpu,cpuacct:/b\n0::/c\n")
    assert homes["pids"] == "/sys/fs/cgroup/pids/a"
    assert homes["cpuacct"] == "/sys/fs/cgroup/cpu/b"
    assert homes[""] == "/sys/fs/cgroup/unified/c"


def test_without_any_cgroup_there_are_no_groups() -> None:
    made = cgroup_setup.create(CgroupLimits(1000, 1.0, 64), mountinfo="", own="")
    assert made.folders == {}
    assert made.members() == set()
    assert made.oom_kills() == 0


def test_kills_for_memory_are_counted_in_both_versions(tmp_path: Path) -> None:
    (tmp_path / "memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n")
    (tmp_path / "memory.events").write_text("low 0\nmax 12\noom 1\noom_kill 2\noom_group_kill 1\n")
    assert cgroups.ControlGroups(1, {"memory": str(tmp_path)}).oom_kills() == 3
    assert cgroups.ControlGroups(2, {"memory": str(tmp_path)}).oom_kills() == 2


@pytest.mark.parametrize("can_join", [True, False])
def test_groups_that_processes_may_not_join_are_done_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, can_join: bool
) -> None:
    group = tmp_path / "pids"
    members = group / "cgroup.procs"
    group.mkdir()
    members.touch() if can_join else members.mkdir()
    monkeypatch.setattr(cgroup_setup, "create", lambda _limits: ControlGroups(1, {"pids": str(group)}))
    limits = ResourceLimits({})
    limits.settle()
    assert limits.cgroups.paths() == ([str(group)] if can_join else [])
    if can_join:
        assert members.read_text().strip() == "0"
