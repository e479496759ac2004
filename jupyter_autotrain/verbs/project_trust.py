"""`backends trust-project`: show what a project's file would do, and agree to it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path

from jupyter_autotrain import backends
from jupyter_autotrain.errors import AutotrainError, BackendError
from jupyter_autotrain.header import HeaderContext, project_trust
from jupyter_autotrain.header.document import Document, resolve
from jupyter_autotrain.header.profile_files import DEFINITIONS
from jupyter_autotrain.verbs.context import CommandContext


def trust_project(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Agree to the project's file that has the digest given; without one, say what it would do and which it has."""
    context = backends.header_context(command.cwd, command.environ)
    project = _project_file(context)
    document = context.read(project)
    digest = project_trust.digest(project, document.data)
    if arguments.name is None and not arguments.yes:
        state = "trusted" if context.is_trusted(project, document) else "not trusted yet"
        command.write(f"{context.shown(project)} ({state}) would set:\n")
        command.write("".join(f"  {line}\n" for line in _effects(document)))
        command.write(f"If you agree to all of it, run: {project_trust.COMMAND} {digest}\n")
        return
    if arguments.name not in {digest, None}:
        raise AutotrainError(
            f"{context.shown(project)} has another digest than {arguments.name}: {digest}.",
            "The digest of the file as you have seen it.",
            f"Look at it again: {project_trust.COMMAND}",
        )
    record = _keep(context, project, digest)
    command.write(f"{context.shown(project)} is trusted until it changes; that stands in {record}.\n")


def _project_file(context: HeaderContext) -> Path:
    if project := context.project_file():
        return project
    unsafe = context.unsafe_project_files()
    found = f"{context.shown(unsafe[0][0])} does not count: {unsafe[0][1]}." if unsafe else "There is no project file."
    raise AutotrainError(
        found,
        "autotrain.yaml in this folder or above it, which only you and root can write.",
        "Go to the project's folder, or take the file over.",
    )


def _keep(context: HeaderContext, project: Path, digest: str) -> Path:
    folder = context.config_folder()
    if folder is None:
        raise BackendError(
            "There is no folder of yours to keep it in.", "HOME or JUPYTER_CONFIG_DIR.", "Set one of them."
        )
    try:
        return project_trust.trust(project, digest, folder)
    except OSError as error:
        raise BackendError(
            f"{folder} cannot be written: {error.strerror}.", "A folder of your own.", "Check its mode and disk."
        ) from None


def _effects(document: Document) -> list[str]:
    """Return one line for each profile and each setting that needs trust."""
    profiles = document.data.get(DEFINITIONS)
    lines = []
    for name, settings in profiles.items() if isinstance(profiles, Mapping) else ():
        lines.append(f"place {name}: {_text(settings)}")
    for key, value in document.data.items():
        if key != DEFINITIONS and key not in project_trust.FREE_KEYS:
            lines.append(f"{key}: {_text(value)}")
    return lines or ["nothing that needs trust"]


def _text(value: object) -> str:
    if isinstance(value, Mapping):
        value = {key: resolve(item) for key, item in value.items()}
    return json.dumps(resolve(value), default=str, ensure_ascii=False)
