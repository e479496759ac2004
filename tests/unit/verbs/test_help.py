"""`help`: every verb with its options, every key, every name of the cell."""

import pytest

from jupyter_autotrain import backends, header, verbs
from jupyter_autotrain.core.spec import TRIAL_NAMES
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.verbs.grammar import grammar


def test_help_explains_each_verb_and_each_of_its_options(terminal):
    for verb, parser in grammar().items():
        text = terminal.run("help", verb)
        assert text == terminal.run(verb, "--help")
        assert parser.description in text
        unexplained = [action.dest for action in parser._actions if not action.help]
        assert unexplained == [], verb


def test_help_explains_the_names_of_the_cell(terminal):
    assert "report(step=None, **metrics)" in terminal.run("help", "report")
    assert set(verbs.CELL_NAMES) == TRIAL_NAMES


def test_every_verb_of_the_grammar_can_be_done(terminal):
    assert tuple(grammar()) == verbs.VERBS or set(grammar()) == set(verbs.VERBS)


def test_an_unknown_word_is_told_with_the_nearest(terminal):
    with pytest.raises(AutotrainError, match="Did you mean 'report'"):
        terminal.run("help", "raport")
    with pytest.raises(AutotrainError, match="Did you mean 'objective'"):
        terminal.run("help", "objectve")


@pytest.mark.parametrize(("word", "meant"), [("results", "best"), ("list", "ls"), ("cancel", "stop"), ("rm", "clean")])
def test_a_word_of_another_tool_is_answered_with_the_verb_that_is_meant(terminal, word, meant):
    with pytest.raises(AutotrainError, match=f"Did you mean '{meant}'"):
        terminal.run(word)


def test_the_overview_has_each_key_in_one_group_and_the_options_of_places_in_none(terminal):
    schema = backends.header_schema()
    grouped = [key for keys in header.KEY_GROUPS.values() for key in keys]
    assert sorted([*grouped, *schema.backend_sections]) == sorted(
        key for key in header.known_keys(schema) if "." not in key
    )
    text = terminal.run("help")
    assert all(f" {key}" in text for key in grouped)
    assert "kubernetes." not in text
    assert max(len(line) for line in text.splitlines()) <= 80
    assert text.index("objective") < text.index("early_stop") < text.index("fetch_limit")
