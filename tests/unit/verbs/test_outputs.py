"""`pull`: what it says of the files of a trial, whose names the trial chose; `report`."""

from __future__ import annotations

import json

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.errors import AutotrainError


def test_a_name_with_control_characters_or_stray_bytes_stays_on_its_line(terminal, add) -> None:
    add("mnist", (["PREPARING", "RUNNING", "SUCCEEDED"], 0.5))
    directory = terminal.find("mnist").directory(1)
    directory.mkdir(parents=True)
    names = ["work/two\nlines.bin", "work/\udcff.bin", "work/ä b.bin"]
    (directory / wire.ELSEWHERE_FILE).write_text(json.dumps(dict.fromkeys(names, 1)))
    lines = terminal.run("pull", "mnist", "--list").splitlines()[1:]
    assert [line.partition("  (")[0] for line in lines] == ["  'two\\nlines.bin'", "  ä b.bin", "  '\\udcff.bin'"]


def test_report_writes_one_html_file(terminal, add):
    add("digits", (("PREPARING", "RUNNING", "SUCCEEDED"), 0.5))
    assert terminal.run("report", "digits").startswith("Wrote digits.html (")
    assert "<h1>digits</h1>" in (terminal.cwd / "digits.html").read_text()
    with pytest.raises(AutotrainError, match="cannot be written"):
        terminal.run("report", "digits", "-o", "missing/digits.html")
