"""A generator that an earlier cell seeded gives a trial the numbers that the cell would get here."""

# Cells are written on one line each, however long, so that they read as a list.
# ruff: noqa: E501

import random
import subprocess
import sys

import numpy as np
import pytest

from jupyter_autotrain.capture.differences import DifferenceKind


@pytest.fixture(autouse=True)
def _same_generators_afterwards():
    states = random.getstate(), np.random.get_state()
    yield
    random.setstate(states[0])
    np.random.set_state(states[1])


def told(book, code, **options):
    return [(one.kind, one.text, one.origin) for one in book.capture(code, **options).differences]


SEEDED = {
    "random": ["import random\nrandom.seed(4)"],
    "a name of its own": ["from random import seed as plant, random as draw\nplant(4)", "import random"],
    "drawn since": ["import random\nrandom.seed(4)\n[random.random() for _ in range(5)]"],
    "a value that is kept": ["import random\nnothing = random.seed(4)"],
    "a helper": ["import random\ndef setup(n):\n    random.seed(n)", "setup(3)"],
    "a helper that imports": ["import random\ndef setup(n):\n    import random as r\n    r.seed(n)", "for k in [3]: setup(k)"],
    "a class that seeds": [
        "import random\nclass Run:\n    def __init__(self):\n        self.seed()\n    def seed(self):\n        random.seed(8)",
        "run = Run()",
    ],
    "an earlier state": ["import random\nold = random.getstate()\nrandom.random()\nrandom.setstate(old)"],
    "seeded and then half a pair of normal numbers": ["import random\nrandom.seed(1); random.gauss(0, 1)"],
}  # fmt: skip


@pytest.mark.parametrize("cells", SEEDED.values(), ids=SEEDED)
def test_a_trial_goes_on_with_the_numbers_of_a_seeded_generator(notebook, cells):
    notebook(*cells).both("print(random.random(), random.gauss(0, 1))")


def test_a_trial_goes_on_with_the_numbers_of_numpy(notebook):
    book = notebook("import numpy as np\nnp.random.seed(0)", "x = np.random.rand(3); np.random.randn()")
    book.both("print(x, np.random.rand(2), np.random.randn())")
    assert told(book, "print(np.random.rand())") == []


def test_a_library_that_draws_numbers_of_numpy_gets_them_too(notebook):
    book = notebook("import numpy\nnumpy.random.seed(3)")
    book.both("from sklearn.utils import shuffle\nprint(shuffle(list(range(20))))")


def test_a_generator_that_the_cell_cannot_draw_from_is_not_sent(notebook):
    book = notebook("import random, numpy as np\nnp.random.seed(0)\nrandom.seed(0)")
    assert book.capture("print(1)").data == {}


def test_reading_a_state_imports_no_library(notebook):
    code = "import random, sys; import jupyter_autotrain.capture as c, pathlib; p = pathlib.Path('.')"
    code += "; c.capture('import random, torch, numpy', {}, cwd=p); print({'torch', 'numpy'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


def test_that_several_trials_draw_alike_is_a_note_and_no_difference(notebook):
    captured = notebook("import random").capture("print(random.random())", trials=4)
    assert captured.differences == ()
    assert captured.notes == (
        "All 4 trials start from the present state of the random generators (random), alike; "
        "`seed: 1` gives each its own.",
    )
    assert notebook("import random").capture("print(1)", trials=4).notes == ()


SEEDED_BY_THE_CELL = {
    "by the generator's own function": "import random as r\nr.seed(3)\nprint(r.random())",
    "by a function of the notebook": "import random\nplant()\nprint(random.random())",
    "by a library's function for all": "import random\nfrom pytorch_lightning import seed_everything as all_\nall_(1)\nprint(random.random())",
    "and what that library loads is not drawn from": "import torch\ntorch.manual_seed(1)\nprint(torch.rand(1))",
}  # fmt: skip


@pytest.mark.parametrize("code", SEEDED_BY_THE_CELL.values(), ids=SEEDED_BY_THE_CELL)
def test_nothing_is_said_of_generators_that_the_cell_seeds_itself(notebook, code):
    book = notebook("import random, numpy\ndef plant():\n    random.seed(5)")
    assert book.capture(code, trials=4).notes == ()


def test_only_the_generators_that_the_cell_does_not_seed_are_named(notebook):
    book = notebook("import random, numpy as np")
    [note] = book.capture("random.seed(1)\nprint(random.random(), np.random.rand())", trials=2).notes
    assert "(numpy)" in note


def test_a_generator_of_its_own_is_data(notebook):
    book = notebook("import numpy as np\nrng = np.random.default_rng(0)\nrng.random()")
    assert told(book, "print(rng.random())") == []
    book.both("print(rng.random())")


def test_the_seed_of_the_header_goes_before_and_that_is_told(notebook):
    book = notebook("import random\nrandom.seed(4)")
    assert told(book, "print(random.random())", seed=7) == [
        (
            DifferenceKind.NOT_CARRIED,
            "the random generators (random): trial 1 starts from `seed: 7` of the header, not from their present state",
            "",
        )
    ]


def test_a_helper_in_a_module_beside_the_notebook_seeds_too(notebook, tmp_path, monkeypatch):
    tmp_path.joinpath("helpers_that_seed.py").write_text("import random as r\n\ndef fix(n):\n    r.seed(n)\n")
    monkeypatch.syspath_prepend(tmp_path)
    book = notebook("import random\nfrom helpers_that_seed import fix\nfix(3)", cwd=tmp_path)
    book.both("print(random.random())")


def test_a_name_for_the_global_generator_stays_one(notebook):
    book = notebook(
        "import random, numpy as np\nrng, plain = np.random.mtrand._rand, random._inst\ndraw = plain.random"
    )
    book.both("print(rng.rand(), np.random.rand(), plain.random(), draw(), random.random())")


def test_what_a_module_draws_and_seeds_when_it_is_imported_comes_before(notebook, tmp_path, monkeypatch):
    tmp_path.joinpath("seeds_itself.py").write_text("import random\nrandom.seed(0)\nWIDTH = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    book = notebook("import random, seeds_itself\nrandom.seed(5)", cwd=tmp_path)
    book.both("import seeds_itself\nprint(random.random(), seeds_itself.WIDTH)")
    code = "import random, seeds_itself\nprint(random.random())"
    assert book.elsewhere(code, seed=3) == f"{random.Random(3).random()}\n"
