"""Tests of what Slurm says, and what a user reads of it; without any daemon."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_autotrain.agent.slurm import job_queue, resolution
from jupyter_autotrain.agent.slurm.job_queue import JobQueue
from jupyter_autotrain.agent.slurm.job_states import SlurmJob, ending_of, sentence_of, waiting_sentence
from jupyter_autotrain.agent.trial import status as statuses

RUNS = {
    "wire": 1, "state": "RUNNING", "reason": "", "supervisor": [1, 1.0, "other-boot"], "groups": [], "signal": None,
}  # fmt: skip
LISTING = (
    "7|N/A|RUNNING|None|0|n1|autotrain-a|\n8|0|PENDING|Resources|1||autotrain-b|\n8|1|TIMEOUT|None|0|n2|autotrain-b|\n"
)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Resources", "next in line"),
        ("Priority", "higher priority"),
        ("QOSMaxJobsPerUserLimit", "the limit on jobs for one user or job of its quality of service"),
        ("AssocGrpGRES", "the limit on GPUs of its group of its account"),
        ("AssocGrpCpuLimit", "the limit on CPUs of its group of its account"),
        ("QOSMaxGRESPerUser", "the limit on GPUs"),
        ("DependencyNeverSatisfied", "never starts"),
        ("ReqNodeNotAvail, UnavailableNodes:n[1-2]", "down, drained or reserved"),
        ("(ReqNodeNotAvail, UnavailableNodes:n[1-2])", "down, drained or reserved"),
        ("SomethingNew", "waits in Slurm: SomethingNew"),
    ],
)
def test_a_pending_reason_is_a_plain_sentence(reason: str, words: str) -> None:
    assert words in sentence_of(reason)


def test_a_requeued_job_says_that_it_was() -> None:
    sentence = waiting_sentence(SlurmJob("8_0", "PENDING", "BeginTime", "", 1))
    assert sentence.startswith("was put back into the queue by Slurm (restart 1) and waits for the time")


@pytest.mark.parametrize(
    ("state", "trial", "words"),
    [
        ("OUT_OF_MEMORY", "FAILED", "raise `resources: {memory: ...}`"),
        ("NODE_FAIL", "LOST", "n2 failed"),
        ("CANCELLED by 1000", "CANCELLED", "scancel"),
        ("PREEMPTED", "PREEMPTED", "higher priority"),
        ("TIMEOUT", "FAILED", "time limit"),
        ("DEADLINE", "FAILED", "deadline"),
        ("BOOT_FAIL", "LOST", "could not be started"),
    ],
)
def test_an_end_by_slurm_has_a_state_a_reason_and_advice(state: str, trial: str, words: str) -> None:
    ending = ending_of(SlurmJob("8", state, "", "n2"))
    assert ending is not None
    assert ending.state == trial
    assert words in ending.reason


def test_an_end_of_its_own_is_not_slurms() -> None:
    assert ending_of(SlurmJob("8", "FAILED")) is None
    assert ending_of(SlurmJob("8", "COMPLETED")) is None


class Cluster:
    """Answers as Slurm's commands do."""

    def __init__(self, listing: str = LISTING, sacct: str | None = None) -> None:
        self.listing = listing
        self.sacct = sacct
        self.calls: list[str] = []

    def __call__(self, argv: list[str]) -> str:
        self.calls.append(argv[0])
        if argv[0] == "squeue":
            return self.listing
        if self.sacct is None:
            raise job_queue.SlurmRefusedError("Slurm accounting storage is disabled")
        return self.sacct


def test_jobs_and_tasks_of_arrays_are_found_in_one_listing() -> None:
    cluster = Cluster()
    queue = JobQueue(cluster, lambda: 100.0)
    assert [queue.find(name).state for name in ("7", "8_0", "8_1")] == ["RUNNING", "PENDING", "TIMEOUT"]
    assert cluster.calls == ["squeue"]
    assert queue.number_of("autotrain-b") == "8"


def test_a_job_that_is_not_listed_is_asked_for_in_the_accounting_where_there_is_one() -> None:
    assert JobQueue(Cluster(sacct="9|PREEMPTED|n1\n")).find("9").state == "PREEMPTED"
    without = Cluster()
    queue = JobQueue(without)
    assert queue.find("9") is None
    assert queue.find("9") is None
    assert without.calls.count("sacct") == 1


def test_a_command_that_cannot_reach_the_controller_is_told_from_a_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "squeue"
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    for text, kind in (
        ("slurm_load_jobs error: Unable to contact slurm controller (connect failure)", job_queue.SlurmDownError),
        (
            "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
            job_queue.SlurmDownError,
        ),
        ("sbatch: error: invalid partition specified: nosuch", job_queue.SlurmRefusedError),
    ):
        program.write_text(f"#!/bin/sh\necho '{text}' >&2\nexit 1\n")
        program.chmod(0o755)
        with pytest.raises(kind):
            job_queue.run(["squeue"])
    program.write_text("""#!/bin/sh\necho "squeue: unrecognized option '--x'\nTry \\"squeue --help\\"" >&2\nexit 1\n""")
    with pytest.raises(job_queue.SlurmRefusedError, match="unrecognized option"):
        job_queue.run(["squeue"])
    with pytest.raises(job_queue.SlurmRefusedError, match="no `nosuch`"):
        job_queue.run(["nosuch"])


def test_no_variable_of_the_caller_goes_into_a_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "sbatch"
    program.write_text("#!/bin/sh\nenv\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("API_KEY", "hunter2-hunter2")
    monkeypatch.setenv("SBATCH_PARTITION", "other")
    printed = job_queue.run(["sbatch"])
    assert "hunter2" not in printed
    assert "SBATCH_" not in printed


def resolve(tmp_path: Path, job: SlurmJob | None, settle_s: float = 0.0) -> object:
    entry = {"batch": "b1", "index": 0, "job": "8"}
    return resolution.Resolution(tmp_path / "root", settle_s).resolve(tmp_path, entry, statuses.read(tmp_path), job)


def test_a_job_that_slurm_has_forgotten_is_waited_for_before_it_is_lost(tmp_path: Path) -> None:
    statuses.write(tmp_path, dict(RUNS))
    assert resolve(tmp_path, None, settle_s=1000.0) == "Slurm does not know its job any more"
    lost = resolve(tmp_path, None)
    assert lost["state"] == "LOST"
    assert statuses.read(tmp_path)["state"] == "LOST"


def test_a_job_that_slurm_has_forgotten_is_not_lost_while_its_lock_is_held(tmp_path: Path) -> None:
    import fcntl

    statuses.write(tmp_path, dict(RUNS))
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert "its supervisor lives" in resolve(tmp_path, None)


def test_a_job_that_runs_is_never_lost_whatever_its_files_say(tmp_path: Path) -> None:
    assert resolve(tmp_path, SlurmJob("8", "RUNNING", "", "n1"))["state"] == "PREPARING"
    statuses.write(tmp_path, {**RUNS, "state": "PREEMPTED"})
    assert resolve(tmp_path, SlurmJob("8", "COMPLETING", "", "n1"))["state"] == "RUNNING"
    assert resolve(tmp_path, SlurmJob("8", "PENDING", "BeginTime", "", 1))["state"] == "PREPARING"


def test_what_slurm_did_goes_before_what_the_supervisor_saw_of_it(tmp_path: Path) -> None:
    statuses.write(tmp_path, {**RUNS, "state": "FAILED", "signal": 15, "reason": "Killed by signal 15 (SIGTERM)."})
    assert resolution.needs_slurm(tmp_path, statuses.read(tmp_path))
    ended = resolve(tmp_path, SlurmJob("8", "TIMEOUT", "", "n1"))
    assert ended["reason"].startswith("Timeout: Slurm ended job 8")
    assert not resolution.needs_slurm(tmp_path, statuses.read(tmp_path))


def test_the_rank_that_failed_first_is_named_although_its_node_ended_last(tmp_path: Path) -> None:
    other = tmp_path / "nodes" / "1"
    other.mkdir(parents=True)
    failed = {**RUNS, "state": "FAILED", "exit_code": 1}
    statuses.write(tmp_path, {**failed, "reason": "Rank 0 failed: a peer is gone", "failed_s": 9.0, "ended_s": 10.0})
    statuses.write(other, {**failed, "reason": "Rank 3 failed: bad shard", "failed_s": 8.0, "ended_s": 20.0})
    assert resolution.needs_slurm(tmp_path, statuses.read(tmp_path))
    assert resolve(tmp_path, SlurmJob("8", "FAILED", "", "n[1-2]"))["reason"] == "Rank 3 failed: bad shard"
    assert not resolution.needs_slurm(tmp_path, statuses.read(tmp_path))


@pytest.mark.parametrize(
    ("first", "why"),
    [
        ({"state": "RUNNING"}, "Lost: its supervisor was killed from outside while the trial ran "),
        ({"state": "FAILED", "signal": 15}, "Lost: node 1: it is lost. "),
    ],
)
def test_a_killed_supervisor_loses_the_trial_also_when_slurms_signal_reaches_the_other_ranks_first(
    tmp_path: Path, first: dict[str, object], why: str
) -> None:
    by_slurm = {**RUNS, "state": "FAILED", "signal": 15, "reason": "Rank 1 was killed by SIGTERM."}
    other = tmp_path / "nodes" / "1"
    other.mkdir(parents=True)
    statuses.write(tmp_path, {**RUNS, **first})
    statuses.write(other, by_slurm if first["state"] == "RUNNING" else RUNS)
    ended = resolve(tmp_path, SlurmJob("8", "FAILED", "", "n[1-2]"))
    assert ended["state"] == "LOST"
    assert ended["reason"].startswith(why)


def test_nodes_have_their_gpus_by_kind_and_those_that_are_down_are_left_out() -> None:
    text = (
        "NodeName=n1 CPUEfctv=8 CPUTot=8 Gres=gpu:a100:4(S:0-1) RealMemory=4000 State=IDLE Partitions=gpu,normal\n"
        "NodeName=n2 CPUTot=8 Gres=gpu:2 RealMemory=4000 State=MIXED Partitions=normal\n"
        "NodeName=n3 CPUTot=8 Gres=(null) RealMemory=4000 State=DOWN* Partitions=normal\n"
    )
    rows = job_queue.nodes(lambda _: text, "")
    assert [(row["name"], row["gpus"], row["memory_bytes"]) for row in rows] == [
        ("n1", [["a100", 4]], 4000 << 20), ("n2", [[None, 2]], 4000 << 20),
    ]  # fmt: skip
    assert [row["name"] for row in job_queue.nodes(lambda _: text, "gpu")] == ["n1"]
