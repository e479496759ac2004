"""Tests of what a trial uses: measured of real processes, in a bounded file, at a bounded cost."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from jupyter_autotrain.agent import system, wire
from jupyter_autotrain.agent.supervisor import usage
from jupyter_autotrain.agent.supervisor.usage import UsageFile
from jupyter_autotrain.agent.system import processes
from jupyter_autotrain.agent.system.nvidia import GpuUsage
from jupyter_autotrain.testing import wait_until

# Its child is the one that works, and holds 40 MB.
WORKS_BELOW = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "x = bytearray(40 << 20); print(flush=True)\\nwhile True: pass"])
child.wait()
"""
# As a supervisor does; a process of its own, since all children of the one that looks are the trial's.
LOOKS_AT = """
import os, signal, subprocess, sys
from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.supervisor import usage

usage.LEAST_PAUSE_S, usage._PAUSE_PER_COST = 0.2, 0.0
file = usage.UsageFile({}, {})
with subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE) as worker:
    worker.stdout.readline()
    percent = 0.0
    while percent <= 5:
        file.update({0, worker.pid})
        if os.path.exists(wire.USAGE):
            percent = float(open(wire.USAGE).readlines()[-1].split(",")[1])
    for child in usage._members({worker.pid}) - {worker.pid}:
        os.kill(child, signal.SIGKILL)
"""
WORKED_BEFORE = """
import time
while time.process_time() < 0.4:
    pass
print(flush=True)
input()
"""
# What is used of NVIDIA's library: two GPUs, of which the second knows no utilization.
FAKE_NVML = """
#include <string.h>
static int handles[2] = {0, 1};
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *count) { *count = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **handle) { *handle = &handles[index]; return index > 1; }
int nvmlDeviceGetHandleByUUID(const char *name, void **handle) {
  *handle = &handles[1];
  return strcmp(name, "GPU-b");
}
int nvmlDeviceGetUtilizationRates(void *handle, unsigned *rates) {
  rates[0] = 75;
  return *(int *) handle ? 3 : 0;
}
int nvmlDeviceGetMemoryInfo(void *handle, unsigned long long *memory) {
  memory[2] = 1000 * (1 + *(int *) handle);
  return 0;
}
"""


@pytest.fixture(autouse=True)
def trial_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def lines(directory: Path) -> list[list[float]]:
    return [json.loads(line) for line in (directory / wire.USAGE).read_text().splitlines()]


def until_a_line(file: UsageFile, workers: set[int], directory: Path) -> None:
    def is_written() -> bool:
        file.update(workers)
        return (directory / wire.USAGE).exists()

    wait_until(is_written, "a line of the file")


def test_what_a_workers_children_use_counts(trial_directory: Path) -> None:
    subprocess.run([sys.executable, "-c", LOOKS_AT, WORKS_BELOW], check=True, timeout=60)
    seconds, percent, memory_bytes, *gpus = lines(trial_directory)[-1]
    assert seconds >= 0.2
    assert percent < 400
    assert 40 << 20 < memory_bytes < 400 << 20
    assert gpus == [None, None]


def test_what_a_process_used_before_the_trial_does_not_count(
    trial_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "LEAST_PAUSE_S", 0.05)
    with subprocess.Popen(
        [sys.executable, "-c", WORKED_BEFORE], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout
        other.stdout.readline()
        file = UsageFile({}, {})
        until_a_line(file, set(), trial_directory)
        other.communicate()
    assert lines(trial_directory)[0][1] < 100


def test_a_count_of_memory_that_takes_long_makes_no_cpu_look_busier(
    trial_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(usage, "LEAST_PAUSE_S", 0.05)
    monkeypatch.setattr(os, "cpu_count", lambda: 1000)
    with subprocess.Popen(
        [sys.executable, "-c", "print(flush=True)\nwhile True: pass"], stdout=subprocess.PIPE
    ) as busy:
        assert busy.stdout
        busy.stdout.readline()
        file = UsageFile({}, {})
        begun_s = system.cpu_s(busy.pid)

        def resident_bytes(_: set[int]) -> int:
            wait_until(lambda: system.cpu_s(busy.pid) > begun_s + 0.3, "0.3 s of its CPU time")
            return 0

        monkeypatch.setattr(processes, "resident_bytes", resident_bytes)
        until_a_line(file, {busy.pid}, trial_directory)
        busy.kill()
    assert lines(trial_directory)[0][1] < 150


def test_no_look_shows_more_than_all_cpus_do(trial_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child reaped between two reads of one look counts at the next: the hours of a worker in one second."""
    monkeypatch.setattr(usage, "LEAST_PAUSE_S", 0.0)
    used_s = iter([0.0, 40_000.0])
    monkeypatch.setattr(usage, "_cpu_s", lambda _: next(used_s))
    file = UsageFile({}, {})
    file.update(set())
    assert lines(trial_directory)[0][1] <= 100 * (os.cpu_count() or 1)


def test_the_file_of_a_trial_of_a_month_stays_small(trial_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(UsageFile, "_look", lambda _, now_s, __: [now_s, 100.0, 123_456_789_012, 99.5, 80 << 30])
    monkeypatch.setattr(usage, "_members", lambda _: set())  # servers of other tests are none of this trial
    file = UsageFile({}, {})
    while now_s[0] < 30 * 86_400:
        file.update(set())
        now_s[0] += max(1.0, now_s[0] / 1000)  # fine enough for each pause that may come
    found = [line[0] for line in lines(trial_directory)]
    assert found[:20] == [float(second) for second in range(1, 21)]
    assert len(found) <= 2200
    assert max(after / before for before, after in itertools.pairwise(found[200:])) < 1.01
    assert (trial_directory / wire.USAGE).stat().st_size < 150_000


def test_looks_that_cost_much_are_rare(trial_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def look(*_: object) -> list[float]:
        begun_s = time.process_time()
        while time.process_time() - begun_s < 0.02:
            pass
        return [1.0, 1.0, 1, 0, 0]

    monkeypatch.setattr(UsageFile, "_look", look)
    file = UsageFile({}, {})
    begun_s = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: begun_s + 1.5)
    file.update(set())
    assert file._due_s - begun_s - 1.5 >= 0.02 * 1000
    assert len(lines(trial_directory)) == 1


def test_memory_whose_count_costs_much_is_counted_rarely_and_the_last_count_holds(
    trial_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = []

    def count(_: set[int]) -> int:
        begun_s = time.process_time()
        while time.process_time() - begun_s < 0.002:
            pass
        counts.append(0)
        return len(counts)

    monkeypatch.setattr(processes, "resident_bytes", count)
    monkeypatch.setattr(usage, "_PAUSE_PER_COST", 1500.0)  # a pause of 3 s and more
    now_s = [time.monotonic()]
    monkeypatch.setattr(time, "monotonic", lambda: now_s[0])
    file = UsageFile({}, {})
    monkeypatch.setattr(UsageFile, "_look", lambda self, now_s, _: [now_s, 0.0, self._memory_bytes, None, None])
    for _ in range(3):
        now_s[0] += 1.5
        file.update(set())
    assert [line[2] for line in lines(trial_directory)] == [1, 1, 1]
    now_s[0] += 60.0
    file.update(set())
    assert lines(trial_directory)[-1][2] == 2


def test_a_link_in_the_files_place_is_not_followed(trial_directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usage, "LEAST_PAUSE_S", 0.0)
    (trial_directory / wire.USAGE).symlink_to(trial_directory / "elsewhere")
    file = UsageFile({}, {})
    file.update(set())
    assert not (trial_directory / "elsewhere").exists()


@pytest.fixture(scope="module")
def nvml(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("nvml")
    (folder / "nvml.c").write_text(FAKE_NVML)
    library = folder / "libnvidia-ml.so.1"
    try:
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, folder / "nvml.c"], check=True)
    except FileNotFoundError:
        pytest.skip("there is no C compiler")
    return library


@pytest.mark.parametrize(
    ("names", "found"), [([], (75.0, 3000)), (["0"], (75.0, 1000)), (["GPU-b"], (None, 2000)), (["7"], (None, None))]
)
def test_gpus_are_read_by_number_or_uuid_and_what_one_does_not_know_is_left_out(
    nvml: Path, names: list[str], found: tuple[float | None, int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jupyter_autotrain.agent.system.nvidia._LIBRARY", str(nvml))
    gpus = GpuUsage(names)
    assert gpus.look() == (None, None)  # the first look is under way
    wait_until(lambda: not gpus._is_looking, "the end of the look")
    assert gpus.look() == found


def test_without_the_library_nothing_is_known_of_gpus_and_it_is_looked_for_once() -> None:
    gpus = GpuUsage(["GPU-1"])
    for _ in range(3):
        assert gpus.look() == (None, None)
    assert gpus._is_looking
