"""Why a Python environment could not be made, from what pip or uv printed."""

from __future__ import annotations

from pathlib import Path

from jupyter_autotrain.agent.environments import virtual

PIP = ("/usr/bin/python3", "-m", "pip", "install")


def test_the_reason_begins_with_the_first_error_that_was_printed(tmp_path: Path) -> None:
    printed = ["Looking in links: /wheels\n", "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES\n", "    Got  dde9\n"]
    reason = virtual._reason(PIP, 1, printed, str(tmp_path))
    assert "pip install ended with exit code 1: ERROR: THESE PACKAGES DO NOT MATCH THE HASHES | Got  dde9." in reason


def test_what_names_no_error_is_told_as_it_was_printed(tmp_path: Path) -> None:
    assert "exit code 2: one | two." in virtual._reason(PIP, 2, ["one\n", "two\n"], str(tmp_path))
