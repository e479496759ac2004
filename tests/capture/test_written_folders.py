"""What a cell writes into: its folders exist in a trial, and shipped files that it may write to are copies there."""

import pytest


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A notebook's folder with folders for what is written, and some data."""
    place = tmp_path / "notebook"
    for name in ("models/old", "figures", "logs/run1", "data", "runs/fold0", "runs/fold1"):
        (place / name).mkdir(parents=True)
    (place / "models" / "old.pt").write_text("old")
    (place / "data" / "a.csv").write_text("x\n")
    monkeypatch.chdir(place)
    return place


def test_a_folder_made_for_a_trial_is_there_wherever_the_cell_runs(notebook, folder):
    book = notebook(cwd=folder)
    code = "import os\nwith open('models/m.txt', 'w') as f:\n    f.write('x')\nprint(os.listdir('models'))"
    captured = book.capture(code)
    assert captured.folders == ("models", "models/old")
    code = "import os\nwith open('figures/m.txt', 'w') as f:\n    f.write('x')\nprint(os.path.exists('figures/m.txt'))"
    assert book.elsewhere(code) == "True\n"
