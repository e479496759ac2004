"""Tests that Linux's own way and the portable one do the same, and that nothing else knows of either."""

from __future__ import annotations

import ast
import inspect
import mmap
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import jupyter_autotrain
from jupyter_autotrain.agent import durable, system
from jupyter_autotrain.agent.system import common, linux, portable, processes, unix_sockets
from jupyter_autotrain.testing import wait_until

PACKAGE = Path(jupyter_autotrain.__file__).parent
NOT_EVERYWHERE = re.compile(
    r"/proc/|/etc/machine-id|\bprctl\b|pidfd|memfd_create|pipe2|sched_[gs]etaffinity|SO_PASSCRED|SCM_CRED|posix_fadvise"
    r"|F_FULLFSYNC|os\.fsync|setns"
)
OF_LINUX_ALONE = ("agent/system/", "agent/durable.py", "testing/")
SLEEPER = [sys.executable, "-c", "print(flush=True); input()"]


@pytest.fixture(params=[linux, portable], ids=["linux", "portable"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Each of the two implementations, in force."""
    module: ModuleType = request.param
    for name in _public(module):
        monkeypatch.setattr(system, name, getattr(module, name))
    return module


def _public(module: ModuleType) -> list[str]:
    made_here = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    constants = [name for name in vars(module) if name.isupper() and not name.startswith("_")]
    return [name for name in (*made_here, *constants) if hasattr(system, name)]


@pytest.fixture
def child() -> Iterator[subprocess.Popen[str]]:
    """Yield a process in a session of its own, with a mark in its environment."""
    env = os.environ | {"AUTOTRAIN_MARK": "7"}
    with subprocess.Popen(
        [*SLEEPER, "word"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process
        process.kill()


def test_both_ways_have_the_same_functions_and_constants() -> None:
    assert sorted(_public(linux)) == sorted(_public(portable))
    for name in _public(linux):
        one = getattr(linux, name)
        other = getattr(portable, name)
        if callable(one):
            assert inspect.signature(one) == inspect.signature(other), name


def test_no_other_module_uses_what_not_every_unix_has() -> None:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        name = str(path.relative_to(PACKAGE))
        text = path.read_text(encoding="utf-8")
        if NOT_EVERYWHERE.search(text) and not name.startswith(OF_LINUX_ALONE):
            code = ast.unparse(_without_docstrings(ast.parse(text)))
            found += [f"{name}: {match[0]}" for match in NOT_EVERYWHERE.finditer(code)]
    assert found == []


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value = ast.Constant(None)
    return tree


@pytest.mark.usefixtures("way")
def test_a_process_is_found_by_session_by_environment_and_by_command(child: subprocess.Popen[str]) -> None:
    assert processes.in_sessions({child.pid}) == {child.pid}
    assert processes.in_sessions({0}) == set()
    assert child.pid in processes.marked("AUTOTRAIN_MARK", "7")
    assert child.pid not in processes.marked("AUTOTRAIN_MARK", "8")
    assert system.command(child.pid)[-1] == b"word"
    assert child.pid in processes.descendants(os.getpid())


def test_memory_is_counted_and_that_of_a_process_that_is_gone_is_none(
    way: ModuleType, child: subprocess.Popen[str]
) -> None:
    assert way.resident_bytes(child.pid) > 1_000_000
    assert way.resident_bytes(1 << 22) == 0


def test_children_and_cpu_time_are_known_and_those_of_a_process_that_is_gone_are_none(
    way: ModuleType, child: subprocess.Popen[str]
) -> None:
    assert child.pid in way.children(os.getpid())
    assert way.children(1 << 22) == []
    assert way.cpu_s(os.getpid()) > 0.0
    assert way.cpu_s(1 << 22) == 0.0


def test_the_files_that_a_process_uses_are_known_and_one_that_is_gone_is_told(way: ModuleType, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    mapped = tmp_path / "mapped"
    mapped.write_bytes(b"x")
    with mapped.open("r+b") as file:
        memory = mmap.mmap(file.fileno(), 1)
    with memory, opened.open("wb"):
        used = "\n".join(way.used_files(os.getpid()))
    assert str(opened) in used
    assert str(mapped) in used
    with pytest.raises((ProcessLookupError, FileNotFoundError)):
        way.used_files(1 << 22)


def test_a_signal_reaches_exactly_the_process_that_is_meant(way: ModuleType, child: subprocess.Popen[str]) -> None:
    created_s = way.look(child.pid).created_s
    assert not way.send_signal(child.pid, created_s + 60.0, signal.SIGKILL)
    assert child.poll() is None
    assert way.send_signal(child.pid, created_s, signal.SIGKILL)
    assert child.wait(timeout=30) == -signal.SIGKILL
    assert not way.send_signal(child.pid, created_s, signal.SIGKILL)


def test_a_process_that_is_gone_is_an_error_that_says_so(way: ModuleType) -> None:
    for look in (way.look, way.environment, way.command):
        with pytest.raises(OSError, match="No such"):
            look(1 << 22)


def test_an_anonymous_file_has_no_name_and_keeps_what_is_written(way: ModuleType) -> None:
    fd = way.anonymous_file()
    os.write(fd, b"word")
    assert os.pread(fd, 9, 0) == b"word"
    assert os.fstat(fd).st_nlink == 0
    os.close(fd)


def test_the_present_boot_has_one_name(way: ModuleType) -> None:
    assert way.boot_id() == way.boot_id() != ""


def test_without_psutil_and_proc_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    with pytest.raises(OSError, match="pip install psutil"):
        portable.look(os.getpid())


def test_a_pid_exists_until_its_process_is_reaped(child: subprocess.Popen[str]) -> None:
    assert common.exists(child.pid)
    child.kill()
    child.wait()
    assert not common.exists(child.pid)


def test_where_fsync_stops_at_the_drive_the_drive_is_flushed_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(durable.fcntl, "F_FULLFSYNC", 51, raising=False)
    monkeypatch.setattr(durable.fcntl, "fcntl", lambda fd, what: asked.append((fd, what)))
    with (tmp_path / "file").open("wb") as file:
        durable.sync(file.fileno())
        assert asked == [(file.fileno(), 51)]


def test_a_socket_below_a_long_path_has_a_short_address(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    with receiver, sender:
        with unix_sockets.address(folder / "end") as address:
            assert len(address) <= 100
            receiver.bind(address)
        with unix_sockets.address(folder / "end") as address:
            sender.sendto(b"word", address)
        assert receiver.recv(9) == b"word"
        assert not Path(address).parent.exists()


def test_the_portable_way_hears_a_socket_of_mode_0600_without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "has_linux_interfaces", lambda: False)
    assert unix_sockets.is_sent_by(os.geteuid(), [])
    monkeypatch.setattr(system, "has_linux_interfaces", lambda: True)
    assert not unix_sockets.is_sent_by(os.geteuid(), [])


def test_windows_is_told_to_use_wsl_in_one_sentence() -> None:
    code = "import sys; sys.platform = 'win32'; import jupyter_autotrain"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "on Windows install it, with Jupyter, inside WSL." in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(("value", "portable_here"), [("1", True), ("0", False), ("", False)])
def test_the_switch_hides_the_interfaces_of_linux(value: str, portable_here: bool) -> None:
    code = "from jupyter_autotrain.agent import system; print(system.ADOPTS_ORPHANS)"
    env = os.environ | {system.PORTABLE_VARIABLE: value}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=env)
    assert done.stdout.strip() == str(not portable_here and sys.platform == "linux")


def test_a_process_that_a_signal_holds_is_told_apart(way: ModuleType, child: subprocess.Popen[str]) -> None:
    assert not way.look(child.pid).is_stopped
    child.send_signal(signal.SIGSTOP)
    wait_until(lambda: way.look(child.pid).is_stopped, "it is held")
    child.send_signal(signal.SIGCONT)
    wait_until(lambda: not way.look(child.pid).is_stopped, "it goes on")
