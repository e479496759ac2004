"""Environment variables that cells set are there in a trial, and those that stay here are told."""

import os

import pytest

from jupyter_autotrain.capture.differences import DifferenceKind


@pytest.fixture(autouse=True)
def _same_variables_afterwards():
    before = dict(os.environ)
    yield
    for name in set(os.environ) - set(before):
        del os.environ[name]
    os.environ.update(before)


def told(book, code, **options):
    return [(one.kind, one.text, one.origin) for one in book.capture(code, **options).differences]


def test_a_variable_is_set_before_a_library_is_imported(notebook):
    book = notebook("import os\nos.environ['SCALE_Q'] = '3'", "import fractions")
    script = book.capture("print(fractions)").script
    assert script.index("SCALE_Q") < script.index("import fractions")


def test_what_the_header_gives_goes_before_and_is_not_told(notebook):
    book = notebook("import os\nos.environ['SCALE_Q'] = '3'")
    captured = book.capture("print(os.environ['SCALE_Q'])", variables=["SCALE_*"])
    assert captured.differences == ()
    assert "'3'" not in captured.script


def test_a_secret_stays_here_and_is_told(notebook):
    book = notebook("import os\nos.environ['QUAY_API_KEY'] = 'a1b2c3d4e5f6'")
    captured = book.capture("print(1)")
    assert "a1b2c3d4e5f6" not in captured.script
    assert [(one.kind, one.text) for one in captured.differences] == [
        (
            DifferenceKind.NOT_CARRIED,
            "os.environ['QUAY_API_KEY'] looks like a secret: write `secrets: [QUAY_API_KEY]` in the header",
        )
    ]


def test_a_variable_of_the_kernel_that_the_cell_asks_for_and_that_is_not_passed_on_is_told(notebook):
    os.environ["SCALE_Q"] = "3"
    book = notebook("import os")
    assert told(book, "print(os.getenv('SCALE_Q'), os.environ.get('NOT_THERE_Q'), os.environ['PATH'])") == [
        (DifferenceKind.NOT_CARRIED, "os.environ['SCALE_Q']: write `pass_env: [SCALE_Q]` in the header", "")
    ]
