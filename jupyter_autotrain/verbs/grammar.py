"""The grammar of all verbs: one argument parser per verb."""

from __future__ import annotations

import argparse
from typing import Final, NoReturn

from jupyter_autotrain.agent.states import ExperimentState
from jupyter_autotrain.core.spec import TRACKERS
from jupyter_autotrain.errors import AutotrainError

SESSION_ACTIONS: Final = (
    "open", "list", "attach", "close", "push", "pull", "interrupt", "restart", "files", "put", "get", "shell",
)  # fmt: skip
BACKEND_ACTIONS: Final = ("list", "check", "add", "edit", "remove", "trust", "trust-project")
_WITH_JSON: Final = (
    "ls",
    "status",
    "show",
    "attach",
    "best",
    "compare",
    "why",
    "stacks",
    "pull",
    "backends",
    "check",
    "config",
    "doctor",
)


class _Parser(argparse.ArgumentParser):
    """An argument parser that raises an error instead of ending the process.

    Attributes:
        advice: A sentence that an error ends with.
    """

    advice = ""

    def error(self, message: str) -> NoReturn:
        raise AutotrainError(
            f"%autotrain: {message}.",
            f"Expected: {' '.join(self.format_usage().split()[1:])}",
            f"{self.advice}See: %{self.prog.replace(' ', ' help ')}",
        )


def grammar() -> dict[str, argparse.ArgumentParser]:
    """Return a parser for each verb, in the order that help lists them."""
    verbs: dict[str, argparse.ArgumentParser] = {}

    def add(name: str, text: str, *, about: str | None = None) -> _Parser:
        verb = verbs[name] = _Parser(prog=f"autotrain {name}", description=text, add_help=False)
        if about is not None:
            verb.add_argument("experiment", nargs=about, default="_", help="name, name@N, id prefix, -1 or _")
        return verb

    for name in ("ls", "status"):
        _add_ls(add(name, "list experiments, newest first"))
    for name in ("show", "attach"):
        add(name, "show an experiment's live view again", about="?")
    _add_logs(add("logs", "print what a trial printed", about="?"))
    add("wait", "wait until an experiment ends", about="?").add_argument(
        "--timeout", type=float, dest="timeout_s", metavar="S", help="seconds"
    )
    _add_track(add("track", "send an experiment to a tracking server, from where it stopped", about="?"))
    _add_label(add("label", "send the samples that a trial was least sure of back to be labelled", about="?"))
    _add_stop(add("stop", "stop an experiment, and say which processes ended", about="?"))
    add("retry", "run the failed trials again", about="?")
    add("resume", "go on with a stopped experiment, from the checkpoints of its trials", about="?")
    _add_update(add("update", "change how many trials there are, also after the end", about="?"))
    _add_continue(add("continue", "more trials from the checkpoints of others, with some parameters changed"))
    add("best", "the best trial", about="?")
    add("compare", "compare experiments side by side", about="+")
    add("why", "why an experiment waits or failed", about="?")
    _add_debug(add("debug", "open pdb in ranks stopped at breakpoint() or an exception", about="?"))
    _add_stacks(add("stacks", "show where each process of a running trial is, line by line", about="?"))
    _add_export(add("export", "write a standalone script that gives the same metrics", about="?"))
    _add_report(add("report", "write all results as one HTML file, which needs no server", about="?"))
    load = add(
        "load",
        "load a returned object; a pickle runs code as it is loaded",
        about="?",
    )
    load.add_argument("variable", nargs="?", help="a name of `returns:`")
    load.add_argument("--trial", type=int, metavar="N", help="which trial (default: the best)")
    _add_pull(add("pull", "copy a trial's output files here", about="?"))
    add("check", "check a header file, a backend, or every backend").add_argument(
        "file", nargs="?", help="a header file or a backend; without one: whether each backend can be used"
    )
    _add_backends(add("backends", "list the backends that can run trials, check, add, edit and remove them"))
    _add_session(add("session", "an interpreter at a place, which keeps its variables between cells"))
    add("config", "settings and where they come from").add_argument(
        "--explain", metavar="KEY", help="where the value of this key comes from"
    )
    add("help", "help on a header key or a verb").add_argument(
        "key", nargs="?", help="a header key, a verb, or a name of the cell such as report"
    )
    add("schema", "print the JSON Schema of the header, or of backends.yaml").add_argument(
        "of", nargs="?", default="header", choices=("header", "backends"), help="header or backends"
    )
    doctor = add("doctor", "check this installation")
    doctor.add_argument("--repair", action="store_true", help="rebuild a damaged or lost store from what can be read")
    doctor.add_argument("--stop-strays", action="store_true", help="end running trials that belong to no experiment")
    _add_clean(add("clean", "delete finished experiments from disk"))
    importing = add("import", "run an experiment file of NNI, with its trial code as it is")
    importing.add_argument("file", metavar="FILE", help="the experiment's YAML file")
    importing.add_argument("--name", metavar="NAME", help="the experiment's name (default: the file's)")
    importing.add_argument("--backend", metavar="NAME", help="where it runs (default: what the file says)")
    importing.add_argument("--trials", metavar="N", help="how many trials (default: what the file says)")
    _add_calibrate(add("calibrate", "measure the speeds of a place for the planner, in about a minute"))
    _add_plan(add("plan", "find the best split of a model over a cluster"))
    _add_mcp(add("mcp", "serve an agent that speaks MCP, over standard input and output; it only reads"))
    for name in _WITH_JSON:
        verbs[name].add_argument("--json", action="store_true", help="print JSON")
    return verbs


def _add_export(export: _Parser) -> None:
    export.add_argument("--yaml", action="store_true", help="write the objects of a cluster, for kubectl")
    export.add_argument("--backend", metavar="NAME", help="with --yaml: of this profile (default: where it ran)")
    export.add_argument("-o", "--output", metavar="FILE", help="the file to write")
    export.add_argument("--trial", type=int, metavar="N", help="which trial (default: the best)")


def _add_report(report: _Parser) -> None:
    report.add_argument("-o", "--output", metavar="FILE", help="the file to write")
    report.add_argument("--by", action="append", default=[], metavar="NAME", help="mean curves of trials equal in this")
    report.add_argument("--over", action="append", default=[], metavar="NAME", help="mean curves over this, as a seed")


def _add_backends(backends: _Parser) -> None:
    backends.advice = "An option of a profile is KEY=VALUE, as in port=2222. "
    texts = (
        "check NAME [HOST ...]: a round trip, step by step; add NAME --type TYPE [HOST ...]; edit NAME ...; "
        "remove NAME; trust NAME HOST [FINGERPRINT]; trust-project [DIGEST | --yes]"
    )
    backends.add_argument("action", nargs="?", choices=BACKEND_ACTIONS, metavar="ACTION", help=texts)
    backends.add_argument("name", nargs="?", metavar="NAME", help="the profile")
    backends.add_argument(
        "words", nargs="*", metavar="HOST", help="hosts, and options as KEY=VALUE; with trust a fingerprint"
    )
    backends.add_argument("--yes", action="store_true", help="with trust-project: agree to the file as it is now")
    backends.add_argument("--type", metavar="TYPE", help="type of backend, such as ssh")
    backends.add_argument("--set", action="append", metavar="KEY=VALUE", help="an option; may be repeated")
    backends.add_argument("--unset", action="append", metavar="KEY", help="remove an option; may be repeated")


def _add_session(session: _Parser) -> None:
    texts = (
        "open NAME; list; attach, close, interrupt, restart, files, shell [NAME]; push and pull VARIABLE; put and get "
        "FILE; a cell runs in it by %%%%autotrain --session NAME"
    )
    session.add_argument("action", choices=SESSION_ACTIONS, metavar="ACTION", help=texts)
    session.add_argument("word", nargs="?", metavar="NAME", help="the session, the variable, or the file")
    session.add_argument("--session", default="", metavar="NAME", help="whose variable or file (default: the newest)")
    session.add_argument("--place", default="local", metavar="NAME", help="open: a backend (default: local)")
    session.add_argument("--gpus", type=int, metavar="N", help="open: GPUs that it holds")
    session.add_argument("--cpus", type=float, metavar="N", help="open: CPUs that it holds")
    session.add_argument("--memory", metavar="SIZE", help="open: such as 16GB")
    session.add_argument(
        "--hold", default="session", choices=("session", "training"), metavar="HOW",
        help="open: training has the GPUs only while a cell runs (default: session)",
    )  # fmt: skip
    session.add_argument("--idle", default="4h", metavar="TIME", help="open: it ends when no cell runs for so long")


def _add_update(update: argparse.ArgumentParser) -> None:
    update.add_argument("--trials", type=int, metavar="N", help="how many trials in all")
    update.add_argument("--concurrency", "-j", type=int, metavar="N", help="how many run at the same time")
    update.add_argument("--time", metavar="TIME", help="the budget of time, such as 2h")
    update.add_argument("--failures", type=int, metavar="N", help="the budget of failed trials")
    update.add_argument("--priority", type=int, metavar="N", help="start before experiments of a lower priority")
    update.add_argument("--weight", type=float, metavar="SHARE", help="the share beside others of its priority")


def _add_continue(more: argparse.ArgumentParser) -> None:
    more.add_argument("experiment", help="name, name@N, id prefix, -1 or _")
    more.add_argument("params", nargs="*", metavar="NAME=VALUE", help="parameters that change")
    more.add_argument("--best", type=int, metavar="N", help="from the N best trials (default: 1)")
    more.add_argument("--trial", type=int, action="append", metavar="N", help="from this trial; may be repeated")


def _add_pull(pull: argparse.ArgumentParser) -> None:
    pull.add_argument("-o", "--output", default="", metavar="FOLDER", help="where to copy them (default: NAME-trial-N)")
    pull.add_argument("--in-place", action="store_true", help="where the cell would have written them in the notebook")
    pull.add_argument("--overwrite", action="store_true", help="replace other files of the same names")
    pull.add_argument("--list", action="store_true", help="only list the files")
    pull.add_argument("--trial", type=int, metavar="N", help="which trial (default: the best)")


def _add_clean(clean: argparse.ArgumentParser) -> None:
    clean.add_argument("experiment", nargs="*", help="name, name@N, id prefix, -1 or _")
    clean.add_argument("--older", metavar="DAYS", type=float, help="all that are older")
    clean.add_argument("--yes", action="store_true", help="really delete (without it: only list)")


def _add_plan(plan: argparse.ArgumentParser) -> None:
    plan.add_argument("model", metavar="EXPR", help="expression that gives the model; quote it if it has spaces")
    plan.add_argument("--inputs", metavar="EXPR", help="expression that gives example inputs")
    plan.add_argument("--cluster", help="2x8xH100, 8xA100-80GB, pod(32x8xNNP-T1000, ring) ..., or a backend")
    plan.add_argument("--mode", default="auto_parallel", help="auto_parallel, data_parallel, stand_alone")
    plan.add_argument("--search", default="dynamic_programming", help="dynamic_programming, recursive_programming")
    plan.add_argument("--memory", help="most memory per device, such as 80GB")
    plan.add_argument("--offload", action="store_true", help="optimizer states and tables may live on the host")
    plan.add_argument("--simplicity", type=float, metavar="SHARE", help="of the step time given up for a simpler plan")


def _add_track(track: argparse.ArgumentParser) -> None:
    track.add_argument("server", nargs="?", default="mlflow", choices=TRACKERS, help="default: mlflow")


def _add_label(label: argparse.ArgumentParser) -> None:
    label.add_argument("--number", "-n", type=int, default=20, metavar="N", help="how many samples (default: 20)")
    label.add_argument("--to", metavar="NAME", help="the entry of data: whose labels they get (default: the only one)")
    label.add_argument("--trial", type=int, metavar="N", help="which trial (default: the best)")


def _add_stop(stop: argparse.ArgumentParser) -> None:
    stop.add_argument("--trial", type=int, action="append", metavar="N", help="end only this trial; may be repeated")
    stop.add_argument("--warm", action="store_true", help="end the warm processes from which trials start here")


def _add_debug(debug: argparse.ArgumentParser) -> None:
    debug.add_argument("ranks", nargs="?", metavar="RANKS", help="such as 0,2 (default: all that are stopped)")
    debug.add_argument("--trial", type=int, metavar="N", help="which trial (default: the newest that runs)")
    debug.add_argument(
        "-c", "--command", action="append", metavar="COMMAND", help="do this, and ask nothing; repeatable"
    )


def _add_stacks(stacks: argparse.ArgumentParser) -> None:
    stacks.add_argument("--trial", type=int, metavar="N", help="which trial (default: the newest that runs)")
    stacks.add_argument("--threads", action="store_true", help="all threads, not only the main one")


def _add_calibrate(calibrate: argparse.ArgumentParser) -> None:
    calibrate.add_argument("--backend", default="local", metavar="NAME", help="the place (default: local)")
    calibrate.add_argument("--workers", type=int, metavar="N", help="the most ranks that are measured")


def _add_mcp(mcp: argparse.ArgumentParser) -> None:
    mcp.add_argument("--allow", default="", metavar="WHAT", help="what else it may do: submit, stop, or submit,stop")
    mcp.add_argument("--trials", type=int, metavar="N", help="with submit: the most trials, of all cells together")
    mcp.add_argument("--time", metavar="TIME", help="with submit: the longest time of an experiment, such as 2h")
    mcp.add_argument("--places", metavar="NAMES", help="with submit: the backends that it may use, as local,cluster")


def _add_ls(ls: argparse.ArgumentParser) -> None:
    ls.add_argument("pattern", nargs="*", metavar="NAME", help="names, or patterns such as 'resnet*'")
    ls.add_argument("-n", "--number", type=int, default=20, help="show at most N (default: 20)")
    states = [state.lower() for state in ExperimentState]
    ls.add_argument("--state", action="append", choices=states, metavar="STATE", help=f"one of: {', '.join(states)}")
    ls.add_argument("--backend", help="only those of this backend")
    ls.add_argument("--warm", action="store_true", help="list the warm processes from which trials start here")


def _add_logs(logs: argparse.ArgumentParser) -> None:
    logs.add_argument("-f", "--follow", action="store_true", help="continue until the trial ends")
    logs.add_argument("--trial", type=int, metavar="N", help="which trial (default: the newest that has begun)")
    logs.add_argument("--stderr", action="store_true", help="stderr instead of stdout")
    logs.add_argument("--rank", type=int, default=0, metavar="N", help="which of several workers (default: 0)")
    logs.add_argument("--launcher", action="store_true", help="what torchrun or mpiexec itself printed")
    logs.add_argument("--raw", action="store_true", help="as printed, with colours and control characters")
    logs.add_argument("-n", "--lines", type=int, default=200, metavar="N", help="the last N lines (default: 200)")
