"""The same cell on an existing SuperLink of Flower: a trial makes an app of it, has it run, and reports its rounds.

The app carries the captured cell and this package's agent, so that its nodes need Flower and the cell's packages alone.
`agent.ranks.flower_app` is what runs there.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.errors import AutotrainError

TYPE_CHECKING = False  # every module of the agent is imported without `typing`
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from jupyter_autotrain.agent.ranks.federated.rounds import TrialContext

GLOBAL_FILE = f"{wire.OUTPUTS}/global.npz"
MARK = "autotrain-round "
CHUNK = 4000  # characters of a line of the log
_PROJECT = """[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "autotrain-app"
version = "1.0.0"
license = { file = "LICENSE" }
dependencies = ["flwr>=1.42"]

[tool.flwr.app]
publisher = "autotrain"
fab-format-version = 1
flwr-version-target = "VERSION"

[tool.flwr.app.components]
serverapp = "autotrain_app.apps:server"
clientapp = "autotrain_app.apps:client"

[tool.flwr.app.config]
"""
_APPS = '''"""Unpacks what the app carries, and lets it answer."""

import base64, json, pathlib, sys, tempfile

from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

client = ClientApp()
server = ServerApp()
folder = pathlib.Path(tempfile.mkdtemp())
for path, content in json.loads(pathlib.Path(__file__).with_name("files.json").read_text()).items():
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).write_bytes(base64.b64decode(content))
sys.path.insert(0, str(folder))


@client.query()
def initial(message, context):
    from jupyter_autotrain.agent.ranks import flower_app

    return flower_app.answer(str(folder), message, context, "initial")


@client.train()
def train(message, context):
    from jupyter_autotrain.agent.ranks import flower_app

    return flower_app.answer(str(folder), message, context, "train")


@server.main()
def main(grid, context):
    from jupyter_autotrain.agent.ranks import flower_app

    flower_app.serve(str(folder), grid)
'''


def run(context: TrialContext, settings: Mapping[str, object]) -> None:
    """Have a SuperLink run the trial's cell, report each round, and keep the global model.

    Args:
        context: The trial.
        settings: The fields of `core.federated.FederatedSpec`, as JSON.

    Raises:
        AutotrainError: The run failed.
    """
    app = f"{context.directory}/{wire.WORK}/app"
    _write_app(app, context, settings)
    command = [sys.executable, "-m", "flwr.cli.app", "run", app, *_named(settings), "--stream"]
    environ = {"FLWR_TELEMETRY_ENABLED": "0", **os.environ, "COLUMNS": str(10 * CHUNK)}
    model: dict[int, str] = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            found = line.partition(MARK)[2]
            if found:
                _take(context, json.loads(found), model)
            else:
                print(line, end="")  # noqa: T201 - the trial's own log
    if process.returncode or not model:
        raise AutotrainError(
            f"Flower's run ended with exit code {process.returncode} and {len(model)} parts of a model.",
            "A run that ends with a global model.",
            "See what Flower says: `%autotrain logs`.",
        )
    wire.write_atomically(
        f"{context.directory}/{GLOBAL_FILE}", base64.b64decode("".join(model[number] for number in sorted(model)))
    )


def _named(settings: Mapping[str, object]) -> list[str]:
    return [str(settings["superlink"])] if settings["superlink"] else []


def _take(context: TrialContext, told: Mapping[str, Any], model: dict[int, str]) -> None:
    if "round" in told:
        context.reporter(told["round"], **told["metrics"])
    else:
        model[told["part"]] = told["model"]


def _write_app(folder: str, context: TrialContext, settings: Mapping[str, object]) -> None:
    from importlib.metadata import version  # noqa: PLC0415 - one trial alone

    package = os.path.dirname(os.path.dirname(os.path.abspath(wire.__file__)))
    files = {"settings.json": json.dumps({**settings, "script": os.path.basename(context.script)}).encode()}
    with open(f"{package}/__init__.py", "rb") as file:
        files["jupyter_autotrain/__init__.py"] = file.read()
    for source, target in ((f"{package}/agent", "jupyter_autotrain/agent"), (str(context.trial["bundle"]), "bundle")):
        for parent, _, names in os.walk(source):
            for name in names:
                if not name.endswith(".pyc"):
                    with open(f"{parent}/{name}", "rb") as file:
                        files[f"{target}{parent[len(source) :]}/{name}"] = file.read()
    os.makedirs(f"{folder}/autotrain_app", exist_ok=True)
    texts = {
        "pyproject.toml": _PROJECT.replace("VERSION", version("flwr")),
        "LICENSE": "The code of a notebook's cell.\n",
        "autotrain_app/__init__.py": '"""A captured cell as an app of Flower."""\n',
        "autotrain_app/apps.py": _APPS,
        "autotrain_app/files.json": json.dumps({p: base64.b64encode(data).decode() for p, data in files.items()}),
    }
    for path, text in texts.items():
        with open(f"{folder}/{path}", "w", encoding="utf-8") as file:
            file.write(text)
