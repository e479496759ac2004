"""A check before the front end is built: says what is missing instead of failing deep inside a build tool."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LEAST_NODE = 20
BUILT = ("static/live.js", "static/plan.js", "labextension/package.json")


class NodeCheckHook(BuildHookInterface):  # type: ignore[type-arg] # its parameter differs between hatchling versions
    """Runs before the hook that calls `jlpm build:prod`."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - hatch's signature
        """Stop the build with one clear text when the bundles must be built and Node is missing or too old."""
        package = Path(self.root, "jupyter_autotrain")
        if all((package / name).exists() for name in BUILT) or os.environ.get("HATCH_JUPYTER_BUILDER_SKIP_NPM") == "1":
            return
        found = node_version()
        if found is None or int(found.split(".")[0]) < LEAST_NODE:
            raise SystemExit(
                f"jupyter-autotrain: building from source needs Node.js >= {LEAST_NODE}; "
                f"found {'none on PATH' if found is None else found}.\n"
                "Install it (nodejs.org, or conda install nodejs), or install a wheel, which needs none."
            )


def node_version() -> str | None:
    """Return the version of `node` on the PATH, such as `20.11.1`; None when there is none."""
    node = shutil.which("node")
    if node is None:
        return None
    answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=False)
    return answer.stdout.strip().removeprefix("v") or None
