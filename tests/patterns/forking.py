"""Both sides of a pattern, each a process that forks for every notebook: `python forking.py kernel|trial MODULE...`.

A line on standard input is a job as JSON; the line that answers is the exit status. A start of Python per notebook,
with IPython and libraries, would cost most of the tests' time.
"""

import asyncio
import dataclasses
import importlib
import json
import os
import signal
import sys
import time
import traceback
from pathlib import Path

LONGEST_S = 300


def serve(work):
    """Fork for every job; `work` does it in the child."""
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if not child:
            run(work, job)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


def run(work, job):
    signal.alarm(LONGEST_S)
    code = 1
    try:
        os.chdir(job["folder"])
        write_to(Path(job["log"]))
        work(job)
        code = 0
    except SystemExit as error:
        code = error.code
    except BaseException:  # noqa: BLE001 - told in the log, and by the exit status
        traceback.print_exc(file=sys.stdout)
    sys.stdout.flush()
    os._exit(code)


def write_to(path):
    """Send what is printed from now on into a file."""
    sys.stdout.flush()
    sys.stderr.flush()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    os.dup2(file, 1)
    os.dup2(file, 2)
    os.close(file)


async def notebook(job, kernel):
    """Run the cells, capture the last one and lay its trial ready, then run it here too."""
    from jupyter_autotrain.cell import submission
    from jupyter_autotrain.errors import AutotrainError

    for cell in job["cells"]:
        await kernel.run(cell)
    result = {"refused": "", "told": [], "notes": [], "took_s": 0.0}
    started = time.perf_counter()
    try:
        draft = submission.read(
            kernel.shell, job["line"], job["cell"], cwd=Path.cwd(), environ=dict(os.environ), planner=no_plan
        )
    except AutotrainError as error:
        result["refused"] = str(error)
    else:
        result["took_s"] = time.perf_counter() - started
        result["told"] = [f"{one.kind}: {one.text}" for one in draft.captured.differences]
        result["notes"] = list(draft.captured.notes)
        lay_ready(draft, job["trial"])
    Path(job["result"]).write_text(json.dumps(result))
    write_to(Path(job["here"]))
    if not result["refused"] and (await kernel.run(draft.parsed.code))["status"] != "ok":
        sys.exit(3)


def no_plan(*_):
    raise AssertionError("no pattern has a header with `parallel:`")


def lay_ready(draft, directory):
    """Make the trial's directory as a backend does."""
    from jupyter_autotrain import capture
    from jupyter_autotrain.agent import wire
    from jupyter_autotrain.agent.json import to_json
    from jupyter_autotrain.agent.states import TrialState
    from jupyter_autotrain.core.attempt import trial_spec
    from jupyter_autotrain.core.records import TrialRecord

    bundle = Path(directory, "bundle")
    spec = dataclasses.replace(draft.spec(), bundle=capture.write_bundle(draft.captured, bundle))
    trial = trial_spec(spec, TrialRecord("pattern", 1, TrialState.WAITING, {}))
    place = {"directory": directory, "bundle": str(bundle), "python": sys.executable, "gpus": [], "resume_from": ""}
    for folder in wire.FOLDERS:
        Path(directory, folder).mkdir()
    Path(directory, wire.TRIAL_FILE).write_text(json.dumps({**to_json(trial), **place}))


def trial(job):
    """Run the cell's script as a worker does."""
    from jupyter_autotrain.agent.ranks import api
    from jupyter_autotrain.agent.ranks.cell_runner import CellRunner, enter_work
    from jupyter_autotrain.agent.trial import environment

    directory = job["trial"]
    variables = environment.complete(json.loads(Path(directory, "trial.json").read_text()), {})
    os.environ.clear()
    os.environ.update(variables)
    context = api.load(directory)
    enter_work(directory, str(context.trial["bundle"]))
    sys.exit(CellRunner(context).run()[1])


def serve_notebooks(modules):
    """Fork for every notebook a kernel that has loaded these modules."""
    sys.path[0] = str(Path(__file__).parents[2])
    from tests.kernel_shell import ForkingKernel, start

    del sys.path[0]
    kernel = start(ForkingKernel)
    load([*modules, "jupyter_autotrain.cell.submission"])
    serve(lambda job: asyncio.run(notebook(job, kernel)))


def serve_trials(modules):
    """Fork for every trial a process that has loaded these modules."""
    del sys.path[0]
    load([*modules, "cloudpickle", "jupyter_autotrain.agent.ranks.worker_main"])
    serve(trial)


def load(modules):
    for module in modules:
        importlib.import_module(module)


if __name__ == "__main__":
    {"kernel": serve_notebooks, "trial": serve_trials}[sys.argv[1]](sys.argv[2:])
