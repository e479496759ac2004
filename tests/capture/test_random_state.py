"""A generator that an earlier cell seeded gives a trial the numbers that the cell would get here."""

# Cells are written on one line each, however long, so that they read as a list.
# ruff: noqa: E501

import random

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
    assert told(book, "print(np.random.rand())") == [
        (
            DifferenceKind.REPLAYED,
            "the random numbers of numpy: every trial continues from their present state",
            "cell [1]",
        )
    ]


def test_a_library_that_draws_numbers_of_numpy_gets_them_too(notebook):
    book = notebook("import numpy\nnumpy.random.seed(3)")
    book.both("from sklearn.utils import shuffle\nprint(shuffle(list(range(20))))")


def test_what_was_never_seeded_stays_random(notebook):
    book = notebook("import random, numpy as np\nx = np.random.rand()\nrng = np.random.default_rng(0)")
    captured = book.capture("print(random.random(), np.random.rand(), rng.random())")
    assert captured.differences == ()
    assert not [name for name in captured.data if "generator" in name]


def test_a_generator_that_the_cell_cannot_draw_from_is_not_sent(notebook):
    book = notebook("import random, numpy as np\nnp.random.seed(0)\nrandom.seed(0)")
    assert book.capture("print(1)").differences == ()


def test_a_generator_of_its_own_is_data(notebook):
    book = notebook("import numpy as np\nrng = np.random.default_rng(0)\nrng.random()")
    assert told(book, "print(rng.random())") == []
    book.both("print(rng.random())")


def test_the_seed_of_the_header_goes_before_and_that_is_told(notebook):
    book = notebook("import random\nrandom.seed(4)")
    assert told(book, "print(random.random())", seed=7) == [
        (
            DifferenceKind.NOT_CARRIED,
            "the random numbers of random, seeded here; `seed: 7` of the header goes before",
            "cell [1]",
        )
    ]


def test_a_helper_in_a_module_beside_the_notebook_seeds_too(notebook, tmp_path, monkeypatch):
    tmp_path.joinpath("helpers_that_seed.py").write_text("import random as r\n\ndef fix(n):\n    r.seed(n)\n")
    monkeypatch.syspath_prepend(tmp_path)
    book = notebook("import random\nfrom helpers_that_seed import fix\nfix(3)", cwd=tmp_path)
    book.both("print(random.random())")
