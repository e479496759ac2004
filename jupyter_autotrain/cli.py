"""`jupyter autotrain VERB`, the same verbs as the line magic.

Variables, folder and clock are read here and passed on.
"""

from __future__ import annotations

import os
import re
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Final

from jupyter_core.paths import jupyter_data_dir

from jupyter_autotrain import verbs
from jupyter_autotrain.agent.terminal import printable
from jupyter_autotrain.client import Experiment
from jupyter_autotrain.client.agent_request import Permissions
from jupyter_autotrain.client.lookup import of_shell
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.errors import AutotrainError, MissingExtraError
from jupyter_autotrain.views.summary import summary

_MCP_PACKAGES: Final = frozenset({"mcp", "mcp_types", "jupyter_client"})


def main(arguments: list[str] | None = None) -> int:
    """Run one verb.

    Returns:
        The exit status: 0; 1 when what was checked or waited for is not well; 2 after an error; 130 after an interrupt.
    """
    environ = dict(os.environ)
    command = verbs.CommandContext(
        home=Home.from_environment(environ, Path(jupyter_data_dir())),
        environ=environ,
        cwd=Path.cwd(),
        write_raw=_write,
        show=_show,
        keep=_keep,
        now=time.time,
        evaluate=_evaluate,
        show_plan=_show_plan,
        origin=of_shell(environ),
        note=_note,
        serve=_serve,
    )
    try:
        is_well = verbs.run(sys.argv[1:] if arguments is None else arguments, command)
    except AutotrainError as error:
        sys.stderr.write(_for_shell(f"{error}\n"))
        return 2
    except BrokenPipeError:
        # The reader (`| head`) has closed the pipe; Python would raise again while flushing at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt as error:
        _write(f"{error}\n" if str(error) else "")
        return 130
    return 0 if is_well else 1


def _for_shell(text: str) -> str:
    """Return a text with the verbs as a shell has them; `%%autotrain` stays, which only a cell has."""
    return re.sub("(?<!%)%autotrain", "jupyter autotrain", text)


def _write(text: str) -> None:
    sys.stdout.write(_for_shell(text))
    sys.stdout.flush()


def _note(text: str) -> None:
    sys.stderr.write(printable(text))


def _show(experiment: Experiment) -> None:
    _write(f"{printable(summary(experiment))}\n")


def _keep(name: str, value: object) -> None:
    _write(printable(f"{name}: {value!r}\n"))


def _evaluate(expression: str) -> object:
    raise AutotrainError(
        f"A shell has no notebook in which {expression!r} has a value.",
        "A model and example inputs are names of a notebook or a script.",
        "Use %autotrain plan in a notebook, or jupyter_autotrain.plan(...) in Python.",
    )


def _serve(permissions: Permissions) -> None:
    try:
        server = import_module("jupyter_autotrain.mcp.server")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _MCP_PACKAGES:
            raise
        raise MissingExtraError("mcp", "mcp", "jupyter autotrain mcp") from None
    environ = dict(os.environ)
    server.serve(Home.from_environment(environ, Path(jupyter_data_dir())), environ, Path.cwd(), permissions)


def _show_plan(plan: object) -> None:
    _write(f"{plan!r}\n")


if __name__ == "__main__":
    sys.exit(main())
