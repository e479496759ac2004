"""Tests of folders that a cell writes into: they exist in a trial, and shipped files that it may write are copies."""

import stat

import pytest

from jupyter_autotrain import capture
from jupyter_autotrain.agent.ranks.cell_runner import _link
from jupyter_autotrain.agent.supervisor.termination import remove_temporary_files
from jupyter_autotrain.errors import ShipError


@pytest.mark.parametrize(
    ("code", "folders"),
    [
        ("import torch\ntorch.save(1, 'models/m.pt')", {"models"}),
        ("import matplotlib.pyplot as plt\nplt.savefig('figures/loss.png')", {"figures"}),
        ("fig.savefig(f'figures/{n}.png')", {"figures"}),
        ("open('logs/run1/log.txt', 'w').close()", {"logs/run1"}),
        ("from pathlib import Path\n(Path('models') / 'a.txt').write_text('x')", {"models"}),
        ("import joblib\njoblib.dump(1, 'models/m.joblib')", {"models"}),
        ("import numpy as np\nnp.save('models/x.npy', np.zeros(2))", {"models"}),
        ("frame.to_csv('models/x.csv')", {"models"}),
        ("import pickle\nwith open('models/x.pkl', 'wb') as f:\n    pickle.dump(1, f)", {"models"}),
        ("for k in range(3): open(f'runs/fold{k}/x.txt', 'w').close()", {"runs/fold0", "runs/fold1"}),
        ("import time\nopen(f'runs/{time.ctime()}/x.txt', 'w').close()", {"runs/fold0", "runs/fold1"}),
        ("from torch.utils.tensorboard import SummaryWriter\nSummaryWriter('logs')", {"logs"}),
        ("model.save('models/m.keras')", {"models"}),
        ("model.save_pretrained('models')", {"models"}),
        ("def save(d): open(d + '/x', 'w').close()\nsave('models')", {"models"}),
        ("import os\nif not os.path.exists('models'): raise ValueError", {"models"}),
        ("x = 'nothing'", set()),
        ("open('top.txt', 'w').close()", set()),
    ],
)
def test_folders_that_the_cell_writes_into_exist_in_a_trial_and_are_empty(notebook, result_folder, code, folders):
    book = notebook(
        "class Any:\n    def __getattr__(self, name): return lambda *a: None\nmodel = fig = frame = n = Any()",
        cwd=result_folder,
    )
    captured = book.capture(code)
    assert set(captured.folders) == folders
    assert captured.files == {}
    assert captured.notes == ()


def test_what_the_cell_wrote_itself_before_it_reads_it_stays_here(notebook, result_folder):
    code = "import torch\ntorch.save(1, 'models/old.pt')\ntorch.load('models/old.pt')"
    assert notebook(cwd=result_folder).capture(code).files == {}
    code = "import torch\ntorch.load('models/old.pt')\ntorch.save(1, 'models/old.pt')"
    assert set(notebook(cwd=result_folder).capture(code).files) == {"models/old.pt"}


@pytest.mark.parametrize(
    ("code", "written"),
    [
        ("open('data/a.csv')", False),
        ("open('data/a.csv', 'a')", True),
        ("open('data/a.csv', 'r+')", True),
        ("open('data/a.csv')\nopen('data/a.csv', 'w')", True),
        ("import sqlite3\nsqlite3.connect('data/a.csv')", True),
        ("import h5py\nh5py.File('data/a.csv', 'a')", True),
        ("import numpy as np\nnp.load('data/a.csv', mmap_mode='r+')", True),
        ("import pandas as pd\ndf = pd.read_csv('data/a.csv')\ndf.to_csv('data/a.csv')", True),
        ("import sys\nopen('data/a.csv')\nopen(sys.argv[1], 'w')", True),
        ("mode = 'w'\nopen('data/a.csv', mode)", True),
    ],
)
def test_a_file_that_the_cell_may_write_to_is_writable_in_the_bundle_alone(notebook, result_folder, code, written):
    captured = notebook(cwd=result_folder).capture(code)
    assert captured.written == ({"data/a.csv"} if written else set())
    capture.write_bundle(captured, result_folder.parent / "bundle")
    mode = (result_folder.parent / "bundle" / "files" / "data" / "a.csv").stat().st_mode
    assert bool(mode & stat.S_IWUSR) is written


@pytest.fixture
def trial(notebook, result_folder):
    """Return a trial directory whose work folder is laid out for a cell that reads one file and appends to another."""
    (result_folder / "data" / "log.csv").write_text("one\n")
    captured = notebook(cwd=result_folder).capture(
        "open('data/a.csv')\nopen('data/log.csv', 'a')\nopen('models/m', 'w')"
    )
    bundle = result_folder.parent / "bundle"
    directory = result_folder.parent / "trial"
    capture.write_bundle(captured, bundle)
    (directory / "work").mkdir(parents=True)
    _link(f"{bundle}/files", f"{directory}/work", f"{directory}/draft")
    return directory


def test_a_trial_writes_to_its_own_copy_and_links_to_what_it_reads(trial):
    work = trial / "work"
    shipped = trial.parent / "bundle" / "files"
    assert (work / "data" / "a.csv").is_symlink()
    with (work / "data" / "log.csv").open("a") as file:
        file.write("two\n")
    assert (shipped / "data" / "log.csv").read_text() == "one\n"
    assert (work / "models").is_dir()
    _link(str(shipped), str(work), f"{work}.draft")  # as a second worker of the trial does
    assert (work / "data" / "log.csv").read_text() == "one\ntwo\n"
    assert {path.name for path in (work / "data").iterdir()} == {"a.csv", "log.csv"}


def test_what_a_trial_left_as_it_was_goes_when_it_ends_and_what_it_changed_stays(trial):
    work = trial / "work"
    bundle = trial.parent / "bundle"
    (work / "models" / "m").write_text("model")
    with (work / "data" / "log.csv").open("a") as file:
        file.write("two\n")
    remove_temporary_files(str(trial), str(bundle))
    left = {path.relative_to(work).as_posix() for path in work.rglob("*") if path.is_file()}
    assert left == {"models/m", "data/log.csv"}


def test_a_copy_that_nobody_wrote_to_is_no_output(trial):
    remove_temporary_files(str(trial), str(trial.parent / "bundle"))
    assert not (trial / "work").exists()


def test_writing_out_of_the_folder_is_refused_before_hours_of_training(notebook, result_folder):
    (result_folder.parent / "other").mkdir()
    with pytest.raises(ShipError, match=r"\.\./other/m\.pt"):
        notebook(cwd=result_folder).capture("import torch\ntorch.save(1, '../other/m.pt')")
