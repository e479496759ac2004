"""The configuration of a Slurm cluster whose nodes are all one machine."""

from __future__ import annotations

import os
from pathlib import Path

_CONFIG = """
ClusterName=lab
SlurmctldHost={name}(127.0.0.1)
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
ReturnToService=2
SlurmctldTimeout=60
SlurmdTimeout=300
MessageTimeout=10
MinJobAge={min_job_age_s}
KillWait=2
JobRequeue=1
OverTimeLimit=0
InactiveLimit=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0,sched_min_interval=0
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=100
GresTypes=gpu
SlurmdParameters=config_overrides
NodeName=DEFAULT CPUs=8 RealMemory=4000 Gres=gpu:lab:2
NodeName=n[1-{count}] NodeHostname={name} NodeAddr=127.0.0.1 Port=[{first_port}-{last_port}]
PartitionName=normal Nodes=ALL Default=YES PriorityTier=1 MaxTime=INFINITE
PartitionName=urgent Nodes=ALL PriorityTier=9 MaxTime=INFINITE
"""
_GRES = "NodeName=n[1-{count}] Name=gpu Type=lab File=/dev/tty[1-2]\n"
_FIRST_PORT = 7101


def write(folder: Path, name: str, count: int, min_job_age_s: int) -> None:
    """Write all files that the daemons of a cluster need.

    Args:
        folder: Where; also of its state, logs and sockets.
        name: The hostname of the machine.
        count: How many nodes.
        min_job_age_s: How long Slurm remembers a job that has ended.
    """
    (folder / "state").mkdir(mode=0o700)
    for number in range(1, count + 1):
        (folder / f"spool-n{number}").mkdir(mode=0o700)
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o600)
    (folder / "hosts").write_text(f"127.0.0.1 localhost {name}\n")
    (folder / "gres.conf").write_text(_GRES.format(count=count))
    last_port = _FIRST_PORT + count - 1
    names = {"name": name, "folder": folder, "count": count, "min_job_age_s": min_job_age_s}
    (folder / "slurm.conf").write_text(_CONFIG.format(first_port=_FIRST_PORT, last_port=last_port, **names))
