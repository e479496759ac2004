"""The functions of the verbs are named in words, so that a verb loads only what it needs: each must be there."""

from importlib import import_module

import pytest

from jupyter_autotrain.verbs.run import _FUNCTIONS


@pytest.mark.parametrize("verb", _FUNCTIONS)
def test_every_verb_has_its_function(verb):
    module, _, name = _FUNCTIONS[verb].partition(":")
    assert callable(getattr(import_module(f"jupyter_autotrain.verbs.{module}"), name))
