"""The configuration of a Slurm cluster on one host, or with a host for each node."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

_CONFIG = """
ClusterName=lab
SlurmctldHost={controller}
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
{nodes}
PartitionName=normal Nodes=ALL Default=YES PriorityTier=1 MaxTime=INFINITE
PartitionName=urgent Nodes=ALL PriorityTier=9 MaxTime=INFINITE
"""
_GRES = "NodeName=n[1-{count}] Name=gpu Type=lab File=/dev/tty[1-2]\n"
_NODE = "NodeName=n{number} NodeHostname={name} NodeAddr={address} Port={port}"
_FIRST_PORT = 7101


def write(folder: Path, hosts: Sequence[tuple[str, str]], min_job_age_s: int) -> None:
    """Write all files that the daemons of a cluster need.

    Args:
        folder: Where; also of its state, logs and sockets.
        hosts: Of each node the name and the address of its host; the first also has the controller.
        min_job_age_s: How long Slurm remembers a job that has ended.
    """
    count = len(hosts)
    (folder / "state").mkdir(mode=0o700)
    for number in range(1, count + 1):
        (folder / f"spool-n{number}").mkdir(mode=0o700)
    (folder / "munge.key").write_bytes(os.urandom(128))
    (folder / "munge.key").chmod(0o600)
    names = [f"{address} {name}\n" for name, address in dict(hosts).items()]
    (folder / "hosts").write_text("".join(["127.0.0.1 localhost\n", *names]))
    (folder / "gres.conf").write_text(_GRES.format(count=count))
    nodes = [
        _NODE.format(number=number + 1, name=name, address=address, port=_FIRST_PORT + number)
        for number, (name, address) in enumerate(hosts)
    ]
    fields = {"controller": f"{hosts[0][0]}({hosts[0][1]})", "folder": folder, "min_job_age_s": min_job_age_s}
    (folder / "slurm.conf").write_text(_CONFIG.format(nodes="\n".join(nodes), **fields))
