"""The program that receives folders on a host, run here beside a pipe: what it keeps, and what a full disk leaves."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from jupyter_autotrain.backends.transfer.channels import ProcessChannel
from jupyter_autotrain.backends.transfer.folders import scan_folder
from jupyter_autotrain.backends.transfer.sending import DamagedFileError, Receiver
from jupyter_autotrain.errors import BackendUnavailableError

MB = 1 << 20
# As on a disk with room for a megabyte: a larger file fails in the middle of a write.
SMALL_DISK = f"""
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({MB}, {MB}))
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture
def receivers() -> Iterator[Callable[..., Receiver]]:
    """Make receivers, whose command line others may precede."""
    made: list[Receiver] = []

    def make(*before: str) -> Receiver:
        made.append(Receiver(lambda argv: ProcessChannel([*before, *argv], "h1"), sys.executable, "h1", "serve()"))
        return made[-1]

    yield make
    for receiver in made:
        receiver.channel.close()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    root = tmp_path / "source"
    root.mkdir()
    (root / "main.py").write_text("print(1)\n")
    (root / "large.bin").write_bytes(os.urandom(3 * MB))
    return root


def test_what_a_trial_writes_to_its_code_never_reaches_another_folder(
    receivers: Callable[..., Receiver], source: Path, tmp_path: Path
) -> None:
    there = str(tmp_path / "there")
    first = Path(receivers().send(scan_folder(source), there, "files"))
    (first / "large.bin").write_bytes(b"changed by a trial")
    (source / "main.py").write_text("print(2)\n")
    with pytest.raises(DamagedFileError, match="changed in the cache"):
        receivers().send(scan_folder(source), there, "files")
    second = Path(receivers().send(scan_folder(source), there, "files"))
    assert scan_folder(second).digest == scan_folder(source).digest
    (second / "large.bin").write_bytes(b"changed again")
    assert (first / "large.bin").read_bytes() == b"changed by a trial"


def test_equal_files_of_one_folder_are_no_links_of_each_other(
    receivers: Callable[..., Receiver], source: Path, tmp_path: Path
) -> None:
    (source / "again.py").write_text("print(1)\n")
    there = Path(receivers().send(scan_folder(source), str(tmp_path / "there"), "files"))
    (there / "again.py").write_text("changed")
    assert (there / "main.py").read_text() == "print(1)\n"


def test_a_disk_that_fills_in_the_middle_leaves_nothing_half_used_and_is_gone_on_with(
    receivers: Callable[..., Receiver], source: Path, tmp_path: Path
) -> None:
    folder = scan_folder(source)
    there = tmp_path / "there"
    with pytest.raises(BackendUnavailableError, match="cannot take the files") as caught:
        receivers(sys.executable, "-c", SMALL_DISK).send(folder, str(there), "files")
    assert "Room on its disk" in str(caught.value)
    assert all((caught.value.found, caught.value.expected, caught.value.action))
    assert not (there / "files" / folder.digest).exists()
    totals: list[int] = []
    arrived = receivers().send(folder, str(there), "files", lambda _sent, total: totals.append(total))
    assert scan_folder(Path(arrived)).digest == folder.digest
    assert totals[-1] < folder.size_bytes  # what had come before is not sent again


def test_folders_that_get_the_same_file_at_the_same_time_do_not_share_it(
    receivers: Callable[..., Receiver], source: Path, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    shutil.copyfile(source / "large.bin", tmp_path / "other" / "large.bin")
    there = str(tmp_path / "there")
    other = scan_folder(tmp_path / "other")
    second = during_the_first_block(lambda: receivers().send(other, there, "files"))
    receivers().send(scan_folder(source), there, "files", second)
    assert [path.stat().st_nlink for path in (Path(there) / "files").glob("*/large.bin")].count(2) == 1


def test_a_part_that_was_taken_over_is_not_taken_from_its_new_receiver(
    receivers: Callable[..., Receiver], source: Path, tmp_path: Path
) -> None:
    there = str(tmp_path / "there")
    with pytest.raises(BackendUnavailableError, match="cannot take the files"):
        receivers(sys.executable, "-c", SMALL_DISK).send(scan_folder(source), there, "files")
    other = scan_folder(source)
    (source / "before.bin").write_bytes(os.urandom(MB))
    folder = scan_folder(source)
    second = during_the_first_block(lambda: receivers().send(other, there, "files"))
    arrived = [receivers().send(folder, there, "files", second), f"{there}/files/{other.digest}"]
    assert [scan_folder(Path(path)).digest for path in arrived] == [folder.digest, other.digest]
    assert not list((tmp_path / "there" / "blobs").glob("*.part-*"))


def test_what_one_job_alone_gets_goes_with_its_directory(
    receivers: Callable[..., Receiver], source: Path, tmp_path: Path
) -> None:
    there = tmp_path / "there"
    arrived = Path(receivers().send(scan_folder(source), str(there), "jobs/home/e1-1-1/moved"))
    assert (arrived / "main.py").read_text() == "print(1)\n"
    assert [path.name for path in there.iterdir()] == ["jobs"]
    assert arrived.is_relative_to(there / "jobs" / "home" / "e1-1-1")


NO_LINKS = """
import errno, os, sys
def refuse(*_, **__):
    raise OSError(errno.EOPNOTSUPP, "Operation not supported")
os.link = refuse
sys.argv = sys.argv[1:]
exec(sys.argv[sys.argv.index("-c") + 1])
"""


def test_a_file_system_without_hard_links_takes_a_folder_and_only_what_changed_of_it(
    receivers: Callable[..., Receiver], source: Path, tmp_path: Path
) -> None:
    (source / "again.bin").write_bytes((source / "large.bin").read_bytes())
    there = tmp_path / "there"
    receivers(sys.executable, "-c", NO_LINKS).send(scan_folder(source), str(there), "files")
    (source / "main.py").write_text("print(2)\n")
    totals: list[int] = []
    receiver = receivers(sys.executable, "-c", NO_LINKS)
    arrived = receiver.send(scan_folder(source), str(there), "files", lambda _sent, total: totals.append(total))
    assert scan_folder(Path(arrived)).digest == scan_folder(source).digest
    assert totals[-1] == len("print(2)\n")
    assert not list((there / "blobs").glob("*.part-*"))


def during_the_first_block(act: Callable[[], object]) -> Callable[[int, int], None]:
    """Return a progress callback that acts once, when some bytes have been sent."""
    acts = iter([act])

    def progress(_sent_bytes: int, _total_bytes: int) -> None:
        for one in acts:
            one()

    return progress
