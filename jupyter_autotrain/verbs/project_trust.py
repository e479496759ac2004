"""`backends trust-project`: show what a project's file would do, and agree to it."""

from __future__ import annotations

import argparse

from jupyter_autotrain import backends
from jupyter_autotrain.header import project_review, project_trust
from jupyter_autotrain.verbs.context import CommandContext


def trust_project(command: CommandContext, arguments: argparse.Namespace) -> None:
    """Agree to the project's file that has the digest given; without one, say what it would do and which it has."""
    context = backends.header_context(command.cwd, command.environ)
    found = project_review.review(context)
    if arguments.name is None and not arguments.yes:
        state = "trusted" if found.is_trusted else "not trusted yet"
        command.write(f"{found.shown} ({state}) would set:\n")
        command.write("".join(f"  {line}\n" for line in found.effects or ("nothing that needs trust",)))
        command.write(f"Where nobody can be asked: {project_trust.VARIABLE}={found.digest}\n")
        command.write(f"If you agree to all of it, run: {project_trust.COMMAND} {found.digest}\n")
        return
    record = project_review.agree(context, found.digest if arguments.name is None else arguments.name)
    command.write(f"{found.shown} is trusted until it changes (noted in {record}).\n")
