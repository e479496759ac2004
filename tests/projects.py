"""Project files of tests, and trust in them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jupyter_autotrain.header import HeaderContext, project_review


def trust_project(folder: Path, environ: Mapping[str, str]) -> None:
    """Agree to the project file of a folder as it is now, as `backends trust-project DIGEST` does."""
    context = HeaderContext(folder, environ)
    project_review.agree(context, project_review.review(context).digest)
