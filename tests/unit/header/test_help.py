"""The page of options in the docs is the one that the models give."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_autotrain import backends
from tests.unit.header.options_page import options_page

PAGE = Path(__file__).parents[3] / "jupyter_autotrain" / "backends" / "OPTIONS.md"


def page() -> str:
    return options_page(tuple(backends.options_models().items()))


def test_the_golden_page_in_the_docs_is_current(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("--golden-update"):
        PAGE.write_text(page(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == page(), "make golden writes it anew"


@pytest.mark.parametrize("name", sorted(backends.options_models()))
def test_every_option_of_every_type_has_a_row_with_what_it_means(name: str) -> None:
    text = page()
    for key, field in backends.options_models()[name].model_fields.items():
        assert f"| `{key}` |" in text
        assert field.description
        assert field.description.replace("|", "\\|") in text
