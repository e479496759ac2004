"""Tests of what a trial displays: pictures become files and notes, the rest text, and training is not disturbed."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.ranks import pictures
from jupyter_autotrain.agent.ranks.api import TrialContext
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.notes import PICTURE_MOST_BYTES, announced_pictures, picture_of
from jupyter_autotrain.core.records import Note
from jupyter_autotrain.testing import trial_file, trial_of

PNG = b"\x89PNG\r\n\x1a\n" + b"x" * 100
SVG = "<svg xmlns='http://www.w3.org/2000/svg'/>"
matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install -e '.[test]'")


class Shown:
    """Has the methods that it is given, as objects with pictures have."""

    def __init__(self, **methods: object) -> None:
        for name, value in methods.items():
            setattr(self, f"_repr_{name}_", lambda value=value: value)


@pytest.fixture
def trial(tmp_path: Path) -> TrialContext:
    content = trial_file(Home(tmp_path), trial_of(Home(tmp_path), ""))
    for folder in wire.FOLDERS:
        (tmp_path / "trial" / folder).mkdir(parents=True)
    assert isinstance(content, dict)
    return TrialContext(str(tmp_path / "trial"), content)


def kept(trial: TrialContext) -> dict[str, bytes]:
    folder = Path(trial.directory, "outputs", "pictures")
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*"))} if folder.is_dir() else {}


def notes(trial: TrialContext) -> list[tuple[object, object]]:
    frames = [json.loads(line) for line in Path(trial.directory, "metrics").read_text().splitlines()]
    return [(frame[2], frame[3]) for frame in frames if frame[0] == "n"]


@pytest.mark.parametrize(
    ("shown", "name"),
    [
        (Shown(png=PNG), "0001.png"),
        (Shown(png=(PNG, {"width": 3})), "0001.png"),
        (Shown(jpeg=b"\xff\xd8\xff" + b"j" * 9), "0001.jpg"),
        (Shown(svg=SVG), "0001.svg"),
        (Shown(mimebundle={"image/png": base64.b64encode(PNG).decode(), "text/plain": "x"}), "0001.png"),
        (Shown(mimebundle=({"image/svg+xml": SVG}, {})), "0001.svg"),
    ],
)
def test_pictures_of_all_kinds_become_files_and_notes(trial: TrialContext, shown: object, name: str) -> None:
    trial.display(shown)
    assert list(kept(trial)) == [name]
    assert notes(trial) == [("picture", f"pictures/{name}")]
    assert not list(Path(trial.directory, "control").iterdir())


def test_a_picture_is_named_by_its_order_and_the_step_before_it(trial: TrialContext) -> None:
    trial.display(Shown(png=PNG))
    trial.reporter(40, loss=1.0)
    trial.display(Shown(png=PNG), Shown(svg=SVG))
    assert list(kept(trial)) == ["0001.png", "0002-step-40.png", "0003-step-40.svg"]
    found = announced_pictures(Note(1, 7, 2, 0.0, str(level), str(text)) for level, text in notes(trial))
    assert [(p.trial, p.attempt, p.order, p.step) for p in found] == [(7, 2, 1, None), (7, 2, 2, 40), (7, 2, 3, 40)]
    assert found[1].title == "trial 7, step 40"
    assert found[1].read(Path(trial.directory)) == PNG


def test_what_has_no_picture_is_printed_and_html_as_its_words(
    trial: TrialContext, capsys: pytest.CaptureFixture[str]
) -> None:
    from IPython.display import HTML

    trial.display(
        {"a": 1}, "text", Shown(html="<b>x</b>", png=None), HTML("<b>bold &amp; brave</b><script>x()</script>")
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["{'a': 1}", "text"]
    assert lines[-1] == "bold & brave"
    assert kept(trial) == {}


@pytest.mark.parametrize(
    "shown",
    [
        Shown(png=b"no picture"), Shown(png=7), Shown(svg="<script>"[1:]), Shown(mimebundle={"image/png": "%%%"}),
        Shown(mimebundle=7), Shown,
    ],
)  # fmt: skip
def test_what_only_claims_to_be_a_picture_is_none(trial: TrialContext, shown: object) -> None:
    trial.display(shown)
    assert kept(trial) == {}


def test_an_object_that_raises_when_shown_leaves_one_warning(trial: TrialContext) -> None:
    class Bad:
        def _repr_png_(self) -> bytes:
            raise ValueError("no display")

    for _ in range(3):
        trial.display(Bad())
    assert notes(trial) == [("warning", "a Bad could not be displayed: no display")]


def test_too_big_and_too_many_pictures_are_refused_with_a_note(
    trial: TrialContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "MOST_PICTURES", 3)
    trial.display(Shown(png=PNG + b"x" * pictures.MOST_BYTES))
    for _ in range(5):
        trial.display(Shown(png=PNG))
    assert len(kept(trial)) == 3
    warnings = [text for level, text in notes(trial) if level == "warning"]
    assert [("2 MB" in str(text), "at most" in str(text)) for text in warnings] == [(True, True), (False, True)]


def test_two_processes_or_threads_of_a_trial_take_no_name_twice(trial: TrialContext) -> None:
    other = TrialContext(trial.directory, dict(trial.trial))
    threads = [threading.Thread(target=one.display, args=(Shown(png=PNG),) * 1) for one in (trial, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(kept(trial)) == ["0001.png", "0002.png"]


def test_a_figure_too_big_is_kept_in_a_lower_resolution(trial: TrialContext) -> None:
    import numpy as np
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 12), dpi=100)
    figure.subplots().imshow(np.random.default_rng(0).random((1500, 1500, 3)), interpolation="nearest")
    trial.display(figure)
    (data,) = kept(trial).values()
    assert 10_000 < len(data) <= pictures.MOST_BYTES


@pytest.mark.parametrize("name", ["pictures/x.png", "../1.png", "pictures/0001.exe", "pictures/0001-step-4.png/..", ""])
def test_no_other_file_passes_for_a_picture(name: str) -> None:
    assert picture_of(1, 1, name) is None


def test_a_link_or_a_huge_file_in_place_of_a_picture_is_not_read(tmp_path: Path) -> None:
    folder = tmp_path / "outputs" / "pictures"
    folder.mkdir(parents=True)
    (folder / "0001.png").symlink_to("/etc/hostname")
    (folder / "0002.png").write_bytes(b"x" * (PICTURE_MOST_BYTES + 1))
    for name in ("pictures/0001.png", "pictures/0002.png", "pictures/0003.png"):
        picture = picture_of(1, 1, name)
        assert picture is not None
        assert picture.read(tmp_path) == b""


SHOWS = """
import matplotlib
{first}
import matplotlib.pyplot as plt
plt.plot([1, 2]); plt.show()
plt.figure(); plt.plot([2, 1]); plt.show()
figure = plt.figure(); figure.show()
assert len(plt.get_fignums()) == 1
from IPython.display import display
display(figure)
"""


@pytest.mark.parametrize("first", ["", "matplotlib.use('Agg')"])
def test_show_keeps_every_open_figure_once_and_closes_it(tmp_path: Path, first: str) -> None:
    script = f"{SHOWS.format(first=first)}\nreport(done=1)"
    home = Home(tmp_path)
    content = trial_file(home, trial_of(home, script))
    directory = home.trial("e1", 1, 1)
    for folder in wire.FOLDERS:
        (directory / folder).mkdir(parents=True, exist_ok=True)
    (directory / wire.TRIAL_FILE).write_text(json.dumps(content))
    code = (
        "import os, sys\nfrom jupyter_autotrain.agent.ranks import api, cell_runner, worker_main\n"
        "context = api.load(sys.argv[1])\nsys.meta_path.insert(0, worker_main.DisplayFinder(context.display))\n"
        "os.chdir(sys.argv[1])\nprint(cell_runner.CellRunner(context).run())"
    )
    env = {**os.environ, wire.TRIAL_VARIABLE: str(directory), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, "-c", code, str(directory)], capture_output=True, text=True, env=env, check=False
    )
    assert "SUCCEEDED" in done.stdout, done.stdout + done.stderr
    # Two shown by `plt.show`, one by `fig.show`, one by `display`, and the one still open at the end.
    assert len(list((directory / "outputs" / "pictures").glob("*.png"))) == 5
    assert done.stderr == ""
