"""The lab itself: hosts that are apart, and nothing left of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from jupyter_autotrain.testing import wait_until
from tests.labs import ssh_lab
from tests.labs.ssh_lab import LabHost, SshLab


def ssh(lab: SshLab, name: str, command: str, within_s: int = 60) -> subprocess.CompletedProcess[str]:
    argv = ["ssh", "-F", str(lab.config), "-o", f"ConnectTimeout={within_s}", name, command]
    return subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)


def test_each_host_has_a_name_a_home_a_key_and_a_boot_of_its_own(lab: SshLab) -> None:
    asked = "hostname; cd; pwd; cat /proc/sys/kernel/random/boot_id"
    answers = [ssh(lab, host.name, asked).stdout.split() for host in lab.hosts]
    assert [answer[0] for answer in answers] == ["h1", "h2", "h3"]
    assert [answer[1] for answer in answers] == ["/home/ada", "/users/g/grace", "/data/home/linus"]
    assert len({answer[2] for answer in answers}) == 3
    assert len({host.public_key for host in lab.hosts}) == 3


def test_each_host_has_files_and_a_user_of_its_own(lab: SshLab, tmp_path: Path) -> None:
    asked = [ssh(lab, host.name, "id -u; touch /tmp/mine ~/mine; ls /tmp/mine").stdout.split() for host in lab.hosts]
    assert [int(answer[0]) for answer in asked] == [2100, 2200, 2300]
    assert {answer[1] for answer in asked} == {"/tmp/mine"}
    for host in lab.hosts:
        (host.home() / "mine").unlink()
        host.path("/tmp/mine").unlink()
    shown = ssh(lab, "h1", f"ls {tmp_path} {lab.folder} {Path(__file__).parent}")
    assert (shown.returncode, shown.stdout) == (2, "")  # nothing of this machine but programs


def test_hosts_reach_one_another_and_no_other_network(lab: SshLab, host: LabHost) -> None:
    other = lab.hosts[1]
    assert host.run("timeout", "60", "bash", "-c", f"head -c 4 </dev/tcp/{other.address}/22") == "SSH-"
    assert "default" not in host.run("ip", "route")


def test_no_server_listens_outside_the_hosts(the_lab: SshLab) -> None:
    host = the_lab.hosts[0]
    assert Path(f"/proc/{host.first_pid}/ns/net").readlink() != Path("/proc/self/ns/net").readlink()
    assert ":22 " in host.run("ss", "-ltnH")


def test_a_host_that_is_cut_does_not_answer_and_answers_after_healing(lab: SshLab, host: LabHost) -> None:
    host.cut()
    assert ssh(lab, host.name, "true", within_s=2).returncode == 255
    host.heal()
    assert ssh(lab, host.name, "true").returncode == 0


def test_a_reboot_ends_what_runs_and_keeps_the_disk(lab: SshLab, host: LabHost) -> None:
    before = ssh(lab, host.name, "cat /proc/sys/kernel/random/boot_id; touch kept; setsid sleep 1000 >&- 2>&- &").stdout
    wait_until(lambda: "sleep 1000" in host.commands().values(), "the process that the reboot ends")
    host.reboot()
    wait_until(lambda: not host.commands(), "the host's rest")
    after = ssh(lab, host.name, "ls; cat /proc/sys/kernel/random/boot_id").stdout.split()
    assert after[0] == "kept"
    assert after[1] != before.strip()


def test_nothing_is_left_of_a_lab_whose_maker_is_killed(lab: SshLab, tmp_path: Path) -> None:
    code = """
import pathlib, sys, time
from tests.labs.ssh_lab import SshLab
lab = SshLab(pathlib.Path(sys.argv[1]), 1)
print(lab.hosts[0].first_pid, flush=True)
time.sleep(1000)
"""
    folder = tmp_path / "other"
    folder.mkdir()
    maker = subprocess.Popen([sys.executable, "-c", code, str(folder)], stdout=subprocess.PIPE, text=True)
    assert maker.stdout is not None
    first = psutil.Process(int(maker.stdout.readline()))
    maker.send_signal(signal.SIGKILL)
    maker.wait()
    maker.stdout.close()
    wait_until(lambda: not first.is_running(), "the end of the host")


def test_without_its_programs_the_reason_names_what_installs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() != 0:
        pytest.skip("the reason is another one for users other than root")
    monkeypatch.setattr(ssh_lab, "_PROGRAMS", ("no-such-program",))
    assert "no-such-program" in ssh_lab.missing()
    assert ".ci/ssh" in ssh_lab.missing()
