"""Pictures of trials in the run card and for the live view: small, bounded, and never markup of a trial's own."""

import base64
import io
import re

import numpy as np
import pytest

from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.objective import Objective
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.store import Ingest, Store
from jupyter_autotrain.views import trial_pictures
from jupyter_autotrain.views.card import LIMIT_BYTES, card

PNG = b"\x89PNG\r\n\x1a\n"
SCRIPT = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "home")


@pytest.fixture
def store(home):
    with Store.open(home) as opened:
        spec = ExperimentSpec("digits", Bundle(), objective=Objective("acc"), trials=2)
        opened.add_experiment("e1", spec, 100.0)
        for number, value in ((1, 0.5), (2, 0.9)):
            opened.add_trial("e1", number, {}, 100.0)
            for state in (TrialState.PREPARING, TrialState.RUNNING):
                opened.change_state("e1", number, state, 101.0)
            points = [("acc", 0, 101.0, value)]
            opened.ingest([Ingest("e1", number, 1, "metrics", 5, points, objective=Objective("acc"))])
        yield opened


def keep(home, store, number, name, data, cursor=10):
    path = home.trial("e1", number, 1) / "outputs" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    store.ingest([Ingest("e1", number, 1, "metrics", cursor, notes=[(1.0, "picture", name, 1)])])


def draw(store, home):
    return card(store, store.experiment("e1"), 200.0, home)


def test_the_card_shows_the_newest_pictures_of_the_best_trial(home, store):
    keep(home, store, 1, "pictures/0001.png", PNG + b"one")
    for order in (1, 2, 3, 4):
        keep(home, store, 2, f"pictures/000{order}-step-{order}0.png", PNG + bytes([order]), 10 * order)
    made = draw(store, home)
    sources = re.findall(r'<img src="data:image/png;base64,([^"]*)" alt="Picture of ([^"]*)"', made.html)
    assert [(base64.b64decode(data)[-1], title) for data, title in sources] == [
        (4, "trial 2, step 40"), (3, "trial 2, step 30"), (2, "trial 2, step 20"),
    ]  # fmt: skip
    assert "4 pictures, the newest of trial 2, step 40: %autotrain pull digits" in made.text
    assert "<!--" not in made.html


def test_a_drawing_of_a_trial_is_an_image_never_markup(home, store):
    keep(home, store, 1, "pictures/0001.svg", SCRIPT)
    html = draw(store, home).html
    assert "<script" not in html
    assert f"data:image/svg+xml;base64,{base64.b64encode(SCRIPT).decode()}" in html


def test_a_card_with_pictures_that_are_too_big_stays_within_its_limit(home, store):
    keep(home, store, 1, "pictures/0001.png", PNG + b"x" * 1_000_000)
    made = draw(store, home)
    assert made.size_bytes <= LIMIT_BYTES
    assert "Picture of" not in made.html
    assert "1 picture, the newest of trial 1" in made.html


def test_a_big_figure_is_shown_smaller(home, store):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install -e '.[test]'")
    from matplotlib.figure import Figure

    figure = Figure(dpi=400)
    figure.subplots().plot(np.random.default_rng(0).random((400, 6)).cumsum(axis=0))
    out = io.BytesIO()
    figure.savefig(out, format="png")
    keep(home, store, 1, "pictures/0001.png", out.getvalue())
    made = draw(store, home)
    assert len(out.getvalue()) > LIMIT_BYTES
    (source,) = re.findall(r"data:image/png;base64,([^\"]*)", made.html)
    width_px = int.from_bytes(base64.b64decode(source)[16:20], "big")  # of a PNG's header
    assert width_px == 320
    assert made.size_bytes <= LIMIT_BYTES


def test_without_a_home_or_without_the_file_the_card_has_no_picture(home, store):
    keep(home, store, 1, "pictures/0001.png", PNG)
    assert "picture" not in card(store, store.experiment("e1"), 200.0).html
    (home.trial("e1", 1, 1) / "outputs" / "pictures" / "0001.png").unlink()
    assert "Picture of" not in draw(store, home).html


def test_a_view_gets_the_bytes_of_the_picture_it_names_and_of_no_other_file(home, store):
    keep(home, store, 1, "pictures/0001-step-4.png", PNG)
    request = {"trial": 1, "attempt": 1, "name": "pictures/0001-step-4.png"}
    message, data = trial_pictures.answer(home, "e1", request)
    assert (message["kind"], message["type"], data) == ("picture", "image/png", PNG)
    assert trial_pictures.answer(home, "e1", request | {"name": "pictures/0002.png"})[1] == b""
    for change in ({"name": "../status.json"}, {"name": 7}, {"trial": "1"}, {"attempt": None}):
        assert trial_pictures.answer(home, "e1", request | change) is None
