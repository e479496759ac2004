"""Which files travel: those that a text of the code or of captured values names; what opens others is told."""

# Cells are written on one line each, however long, so that they read as a list.
# ruff: noqa: E501

import argparse

import pandas as pd
import pytest

from jupyter_autotrain.errors import ShipError

DATA = {"data/a.csv", "data/b.csv", "data/deep/c.csv"}
AB = {"data/a.csv", "data/b.csv"}


@pytest.mark.parametrize(
    "code",
    [
        "iris = {'data': 1}\nprint(iris['data'])",
        "import pandas as pd\ndf = pd.DataFrame({'data': [1]})\nprint(df['data'].sum(), df.data.sum())",
        "def fetch(name, part): return 1\nfetch('mnist', 'data')",
        "'''top.csv'''\ndef f():\n    'top.csv'\nf()\nprint('data')",
        "labels = ['data', 'imgs']\nfor label in labels: print(label)",
        "from sklearn.datasets import load_iris\nX = load_iris()['data']",
        "kwargs = dict(label='data', name='imgs')\nprint(kwargs)",
        "assert 'data' in {'data'}",
        "import torch\nmodel = {'data': 1}\nmodel.get('data')",
        "import json\njson.loads('{\"data\": 1}')",
        "open('http://x.org/data')",
    ],
)
def test_a_text_that_names_no_file_brings_none(notebook, data_folder, code):
    assert notebook(cwd=data_folder).capture(code).files == {}


def test_the_name_of_a_captured_variable_is_no_file(notebook, data_folder):
    book = notebook("data = [1, 2]\nimgs = {'data': 'data'}", cwd=data_folder)
    assert book.capture("print(data, imgs['data'])").files == {}


@pytest.mark.parametrize(
    ("code", "files"),
    [
        ("open('top.csv')", {"top.csv"}),
        ("import io\nio.open('top.csv', 'rb')", {"top.csv"}),
        ("import pandas as pd\npd.read_csv('data/a.csv')", {"data/a.csv"}),
        ("import pandas\npandas.read_csv(filepath_or_buffer='data/a.csv')", {"data/a.csv"}),
        ("from pandas import read_csv as rc\nrc('data/a.csv')", {"data/a.csv"}),
        ("import numpy as np\nnp.loadtxt('top.csv', skiprows=1)", {"top.csv"}),
        ("import json\nwith open('top.csv') as f:\n    json.load(f)", {"top.csv"}),
        ("import pickle\npickle.load(open('top.csv', 'rb'))", {"top.csv"}),
        ("import torch\ntorch.load('top.csv', weights_only=True)", {"top.csv"}),
        ("import joblib\njoblib.load('top.csv')", {"top.csv"}),
        ("import gzip\ngzip.open('top.csv')", {"top.csv"}),
        ("import zipfile\nwith zipfile.ZipFile('top.csv') as z:\n    z.read('data/a.csv')", {"top.csv", "data/a.csv"}),
        ("import sqlite3\nsqlite3.connect('top.csv')", {"top.csv"}),
        ("from PIL import Image\nImage.open('imgs/cat/1.png')", {"imgs/cat/1.png"}),
        ("import matplotlib.pyplot as plt\nplt.imread('imgs/cat/1.png')", {"imgs/cat/1.png"}),
        ("import os\nos.listdir('data')", DATA),
        ("import os\nfor r, d, files in os.walk('data'): print(r)", DATA),
        ("from glob import glob\nglob('data/*.csv')", AB),
        ("import glob\nglob.glob('data/**/*.csv', recursive=True)", DATA),
        ("from pathlib import Path\nlist(Path('data').glob('*.csv'))", AB),
        ("from pathlib import Path\nsorted(Path('data').rglob('*.csv'))", DATA),
        ("from pathlib import Path\nfor p in Path('data').iterdir(): print(p)", DATA),
        ("import shutil\nshutil.copy('top.csv', 'copy.csv')", {"top.csv"}),
        ("import yaml\nyaml.safe_load(open('top.csv'))", {"top.csv"}),
        ("import xgboost as xgb\nxgb.DMatrix('top.csv')", {"top.csv"}),
        ("import xgboost as xgb\nb = xgb.Booster()\nb.load_model('top.csv')", {"top.csv"}),
        ("import lightgbm as lgb\nlgb.Booster(model_file='top.csv')", {"top.csv"}),
        ("from datasets import load_dataset\nload_dataset('csv', data_files='data/a.csv')", {"data/a.csv"}),
        (
            "from datasets import load_dataset\nload_dataset('csv', data_files={'train': 'data/a.csv', 'test': ['data/b.csv']})",
            AB,
        ),
        ("from torchvision import datasets\ndatasets.ImageFolder('imgs')", {"imgs/cat/1.png", "imgs/dog/2.png"}),
        (
            "from torchvision.datasets import ImageFolder\nImageFolder(root='imgs', transform=None)",
            {"imgs/cat/1.png", "imgs/dog/2.png"},
        ),
        ("from transformers import AutoModel\nAutoModel.from_pretrained('./data')", DATA),
        ("from transformers import AutoModel\nAutoModel.from_pretrained('bert-base')", set()),
        ("from tensorflow import keras\nkeras.models.load_model('data')", DATA),
        (
            "import tensorflow as tf\ntf.keras.utils.image_dataset_from_directory('imgs')",
            {"imgs/cat/1.png", "imgs/dog/2.png"},
        ),
        ("import tensorflow as tf\ntf.data.TextLineDataset(['data/a.csv', 'data/b.csv'])", AB),
        ("import spacy\nspacy.load('./data')", DATA),
        ("import cv2\ncv2.imread('imgs/cat/1.png')", {"imgs/cat/1.png"}),
        ("import rasterio\nrasterio.open('top.csv')", {"top.csv"}),
        ("import numpy as np\nnp.load('top.csv', allow_pickle=True)", {"top.csv"}),
        ("from tokenizers import Tokenizer\nTokenizer.from_file('vocab.txt')", {"vocab.txt"}),
        ("from transformers import BertTokenizer\nBertTokenizer(vocab_file='vocab.txt')", {"vocab.txt"}),
        ("import os\nif os.path.exists('top.csv'): print(1)", {"top.csv"}),
        ("import runpy\nrunpy.run_path('top.csv')", {"top.csv"}),
        ("import os\nos.chdir('data')\nopen('a.csv')", DATA),
    ],
)
def test_files_that_calls_open_travel(notebook, data_folder, code, files):
    assert set(notebook(cwd=data_folder).capture(code).files) == files


@pytest.mark.parametrize(
    ("code", "files"),
    [
        ("for n in ['a', 'b']: open(f'data/{n}.csv')", AB),
        ("for i, n in enumerate(['a', 'b']): open('data/%s.csv' % n)", AB),
        ("for n, k in zip(('a', 'b'), (1, 2)): open('data/{}.csv'.format(n))", AB),
        ("frames = [open(p) for p in ['data/a.csv', 'data/b.csv']]", AB),
        ("import os\nROOT = 'data'\nfor f in os.listdir(ROOT):\n    open(os.path.join(ROOT, f))", DATA),
        ("def load(path='data/a.csv'):\n    return open(path)\nload()", {"data/a.csv"}),
        ("def load(path='data/a.csv'):\n    return open(path)\nload('data/b.csv')", AB),
        ("def inner(p): return open(p)\ndef outer(q): return inner(q)\nouter('top.csv')", {"top.csv"}),
        ("class C:\n    csv = 'data/a.csv'\nopen(C.csv)", {"data/a.csv"}),
        (
            "import argparse\np = argparse.ArgumentParser()\np.add_argument('--csv-file', default='data/a.csv')\nargs = p.parse_args([])\nopen(args.csv_file)",
            {"data/a.csv"},
        ),
        ("def load(p): return open(p)\nlist(map(load, ['data/a.csv', 'data/b.csv']))", AB),
        (
            "from functools import partial\ndef load(p): return open(p)\nf = partial(load, 'data/a.csv')\nf()",
            {"data/a.csv"},
        ),
        ("def load(csv): return open(csv)\ncfg = {'csv': 'data/a.csv'}\nload(**cfg)", {"data/a.csv"}),
        ("for i in range(3): open(f'imgs/cat/{i}.png')", {"imgs/cat/1.png"}),
        ("for i in range(3): open(f'imgs/cat/{i:d}.png')", {"imgs/cat/1.png"}),
        ("files = []\nfor n in 'ab':\n    files.append('data/a.csv')\nfor f in files: open(f)", {"data/a.csv"}),
        (
            "import os, random\nfiles = [os.path.join('data', f) for f in os.listdir('data')]\nrandom.shuffle(files)\nopen(files[0])",
            DATA,
        ),
        ("def path_of(n): return f'data/{n}.csv'\nopen(path_of('a'))", AB),
        ("args = {'csv': 'data/a.csv', 'other': 'data/b.csv'}\nopen(args['csv'])", AB),
        ("if (p := 'top.csv'): open(p)", {"top.csv"}),
        ("debug = False\nopen('data/a.csv' if debug else 'data/b.csv')", AB),
    ],
)
def test_paths_are_followed_through_the_code(notebook, data_folder, code, files):
    assert set(notebook(cwd=data_folder).capture(code).files) == files


@pytest.mark.parametrize(
    ("before", "code", "files"),
    [
        ("PATH = 'data/a.csv'", "open(PATH)", {"data/a.csv"}),
        ("from pathlib import Path\nROOT = Path('data')", "open(ROOT / 'a.csv')", {"data/a.csv"}),
        ("from pathlib import Path\nROOT = Path('data')", "list(ROOT.glob('*.csv'))", AB),
        ("def load(path='data/a.csv'):\n    return open(path)", "load()", {"data/a.csv"}),
        ("def load(path):\n    return open(path)", "load('data/b.csv')", {"data/b.csv"}),
        ("cfg = {'csv': 'data/a.csv', 'name': 'data'}", "open(cfg['csv'])", {"data/a.csv"}),
        ("class Config:\n    path = 'data/a.csv'", "open(Config.path)", {"data/a.csv"}),
        ("class Config:\n    path = 'top.csv'\nConfig.path = 'data/a.csv'", "open(Config.path)", {"data/a.csv"}),
        ("FILES = ['data/a.csv', 'data/b.csv']", "for f in FILES: open(f)", AB),
        ("import glob\nfiles = sorted(glob.glob('data/*.csv'))", "for f in files[:2]: open(f)", AB),
        ("import os\nnames = os.listdir('data')", "for n in names: open(os.path.join('data', n))", AB),
    ],
)
def test_paths_of_earlier_cells_are_followed(notebook, data_folder, before, code, files):
    assert set(notebook(before, cwd=data_folder).capture(code).files) >= files
    assert (
        set(notebook(before, cwd=data_folder).capture(code).files)
        <= files | {"top.csv" if "top" in before else ""} | DATA
    )


@pytest.mark.parametrize(
    "code",
    [
        "def load(name, root):\n    import os\n    return open(os.path.join(root, name + '.csv'))\nload('a', 'data')",
        "class C:\n    def __init__(self, root):\n        self.root = root\n    def load(self):\n        return open(self.root + '/a.csv')\nC('data').load()",
        "from pathlib import Path\np = Path('data/a.txt').with_suffix('.csv')\np.read_text()",
        "path = 'data'\npath += '/a.csv'\nopen(path)",
        "import os\npath = os.environ.get('DATA', 'data') + '/a.csv'\nopen(path)",
    ],
)
def test_a_path_that_its_own_text_does_not_tell_is_told_with_the_line_that_sends_it(notebook, data_folder, code):
    book = notebook(cwd=data_folder)
    captured = book.capture(code)
    assert captured.files == {}
    assert any("`ship:" in one.text for one in captured.differences)
    assert set(book.capture(code, ship=["data"]).files) == DATA
    assert book.capture(code, ship=["data"]).differences == ()


def test_paths_in_live_objects_are_followed(notebook, data_folder):
    book = notebook(cwd=data_folder)
    book.namespace["args"] = argparse.Namespace(csv="data/a.csv", title="data")
    book.namespace["table"] = pd.DataFrame({"file": ["cat/1.png", "dog/2.png"], "label": ["data", "top.csv"]})
    assert set(book.capture("open(args.csv)").files) == {"data/a.csv"}
    for code in (
        "for i in range(len(table)): open(f'imgs/{table.file.iloc[i]}')",
        "open('imgs/cat/' + table.loc[0, 'label'])\nopen('imgs/dog/' + table.iloc[1]['label'])",
    ):
        assert set(book.capture(code).files) == {"imgs/cat/1.png", "imgs/dog/2.png"}, code


def test_the_table_tells_size_and_line_of_every_file(notebook, data_folder):
    book = notebook("def load(p):\n    return open(p)", cwd=data_folder)
    captured = book.capture("x = 1\nload('data/a.csv')\nopen('top.csv')", ship=["vocab.txt"])
    rows = {row.name: (row.origin, row.size_bytes) for row in captured.captured if row.how == "file"}
    assert rows == {"data/a.csv": ("line 2", 8), "top.csv": ("line 3", 8), "vocab.txt": ("ship:", 8)}


@pytest.mark.parametrize(
    "code",
    [
        "import os\npath = os.environ['WHERE']\nopen(path)",
        "import torch, sys\ntorch.load(sys.argv[1])",
    ],
)
def test_a_file_whose_name_only_the_run_knows_is_told(notebook, data_folder, code):
    book = notebook("import time\ndef unknown(): return [time.ctime()]", cwd=data_folder)
    (told,) = book.capture(code).differences
    assert "not known before it runs: name it under `ship:`" in told.text
    assert book.capture(code, ship=["top.csv"]).differences == ()


@pytest.mark.parametrize(
    "code",
    [
        "import torch\npath = f'{run}.pt'\ntorch.save(1, path)\ntorch.load(path)",
        "import tempfile, os\nd = tempfile.mkdtemp()\nopen(os.path.join(d, 'x'), 'w')\nopen(os.path.join(d, 'x'))",
        "import io\nimport pandas as pd\npd.read_csv(io.StringIO('a'))",
        "import urllib.request, json\njson.load(urllib.request.urlopen('http://x'))",
        "import torch\nstate = torch.load(checkpoint.path)",
        "import pandas as pd\npd.read_csv(f'https://x.org/{run}.csv')",
    ],
)
def test_what_the_cell_itself_writes_or_fetches_is_not_told(notebook, data_folder, code):
    assert (
        notebook("import time\nrun = time.time()\ndef fit(): return object()", cwd=data_folder)
        .capture(code)
        .differences
        == ()
    )


def test_a_part_of_a_path_that_is_not_known_brings_all_files_that_fit(notebook, data_folder):
    book = notebook(cwd=data_folder)
    code = "import time\nname = time.ctime()\nopen(f'data/{name}.csv')"
    assert set(book.capture(code).files) == AB
    assert book.capture(code).differences == ()
    assert set(book.capture("csv = 'data/a.csv'\nopen(csv)", parameters=["csv"]).files) == {"data/a.csv"}
    assert set(book.capture("n = 'a'\nopen(f'data/{n}.csv')", parameters=["n"]).files) == AB


@pytest.mark.parametrize(
    "code",
    [
        "open('../beside/far.csv')",
        "from pathlib import Path\n(Path('..') / 'beside' / 'far.csv').read_text()",
        "import os\nos.listdir('../beside')",
        "import torch\ntorch.save(1, '../beside/m.pt')",
        "import pandas as pd\npd.read_csv(os.path.join(ROOT, 'far.csv'))",
    ],
)
def test_a_relative_path_out_of_the_folder_is_refused_with_what_helps(notebook, data_folder, code):
    with pytest.raises(ShipError) as caught:
        notebook("import os\nROOT = '../beside'", cwd=data_folder).capture(code)
    message = str(caught.value)
    assert "out of the notebook's folder" in message
    assert "../beside" in message
    assert str(data_folder.parent / "beside") in message
    assert "`ship: [beside]`" in message
    assert len(message.splitlines()) <= 6


def test_an_absolute_path_is_read_where_it_is(notebook, data_folder):
    captured = notebook(cwd=data_folder).capture(f"open('{data_folder.parent}/beside/far.csv')\nopen('../nothing.csv')")
    assert (captured.files, captured.differences) == ({}, ())


def test_attributes_of_dictionaries_are_followed(notebook, data_folder):
    book = notebook(
        "class Settings(dict):\n    __getattr__ = dict.get\ncfg = Settings(path='data/a.csv')", cwd=data_folder
    )
    assert set(book.capture("open(cfg.path)").files) == {"data/a.csv"}
    code = "from types import SimpleNamespace\nc = SimpleNamespace(path='data/a.csv')\nopen(c.path)"
    assert set(book.capture(code).files) == {"data/a.csv"}


def test_capture_of_a_large_folder_table_stays_quick(notebook, data_folder):
    book = notebook(cwd=data_folder)
    book.namespace["names"] = pd.DataFrame({"file": [f"{i}.png" for i in range(30_000)]})
    assert book.capture("for n in names['file']: open('imgs/cat/' + n)").files.keys() == {"imgs/cat/1.png"}
