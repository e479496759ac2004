"""The program that everything is started by: `python [-I -S] start.py PART ARGUMENT...`.

Thin: all else comes from compiled files.
"""

# ruff: noqa: PLC0415 - a part loads what it needs alone

import os
import sys


def start(part: str, *given: str) -> None:  # noqa: C901 - a list of parts
    """Be a part: what the agent starts here, and, in the user's interpreter, a worker, a kernel or a warm process."""
    if part == "worker":
        from jupyter_autotrain.agent.ranks.worker_main import main as work

        del sys.path[0]
        work(given[0], int(given[1]))
    elif part == "warm":
        from jupyter_autotrain.agent.pool.warm_process import main as wait_for_trials

        del sys.path[0]
        wait_for_trials(given[0], float(given[1]), int(given[2]))
    elif part == "kernel":
        from jupyter_autotrain.agent.session.jupyter_kernel import main as serve

        del sys.path[0]
        serve(given[0], list(given[1:]))
    elif part == "supervisor":
        from jupyter_autotrain.agent.supervisor.supervisor_main import main as supervise

        supervise(*given)
    elif part == "rank":
        from jupyter_autotrain.agent.supervisor.rank_main import main as run_rank

        run_rank(*given)
    elif part == "environment":
        from jupyter_autotrain.agent.environments.starting import main as enter
        from jupyter_autotrain.agent.launchers import mpi

        enter(given[0], given[1], given[2:], mpi.command_in)
    elif part == "container":
        from jupyter_autotrain.agent.environments.container_main import main as contain

        contain(*given)
    elif part == "slurm_task":
        from jupyter_autotrain.agent.slurm.slurm_task import main as run_task

        run_task(*given)
    elif part == "slurm_pilot":
        from jupyter_autotrain.agent.slurm.slurm_pilot import main as fly

        fly(given[0], float(given[1]), float(given[2]))
    elif part == "request":
        from jupyter_autotrain.agent.pods.requests import main as answer_request

        answer_request()
    elif part == "answer":
        from jupyter_autotrain.agent.pods.service_job import answer

        answer(os.environ, *given)


if __name__ == "__main__":
    # The package is found by its own folder once it is loaded, so the path is needed only here: the user's interpreter
    # may be another one, which must not see the packages installed beside this one.
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    sys.path[: not getattr(sys.flags, "safe_path", sys.flags.isolated)] = [root]
    start(*sys.argv[1:])
