"""Completion in a real IPython completer."""

import atexit

import pytest
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from jupyter_autotrain.cell import completion


@pytest.fixture
def shell():
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell(config=config)
    completion.install(
        shell, lambda: ["digits", "digits@2", "mnist"], lambda: {"local": "type", "debug": "autotrain.yaml line 2"}
    )
    yield shell
    completion.remove(shell)
    atexit.unregister(shell.atexit_operations)  # each of them collects all garbage of this process


def texts(shell, cell):
    cursor = cell.index("|@")
    with provisionalcompleter():
        found = list(shell.Completer.completions(cell.replace("|@", ""), cursor))
    return {(one.start, one.text) for one in found}, cursor


def names(shell, cell):
    return {text for _, text in texts(shell, cell)[0]}


def test_a_key_of_the_header_is_completed_alone(shell):
    assert names(shell, "%%autotrain\nobj|@\n---\nobjects = 1") == {"objective: "}


def test_the_completed_text_replaces_the_word_before_the_cursor(shell):
    found, cursor = texts(shell, "%%autotrain\nlocal: {use_a|@}\n---\n")
    assert found == {(cursor - len("use_a"), "use_active_gpu: ")}


def test_completions_say_what_they_mean(shell):
    said = meanings(shell, "%%autotrain x\n|@\n---\n")
    assert said["trials: "] == "How many trials"
    assert said["resources: "] == "What one trial needs"
    flags = meanings(shell, "%%autotrain x --|@")
    assert flags["--gpus"] == "Number of GPUs"
    assert flags["--wait"] == "Wait until the experiment ends"
    assert meanings(shell, "%autotrain |@")["best"] == "the best trial"


def meanings(shell, cell):
    with provisionalcompleter():
        found = list(shell.Completer.completions(cell.replace("|@", ""), cell.index("|@")))
    return {one.text: one.type.replace("\N{NO-BREAK SPACE}", " ") for one in found}


def test_the_objective_offers_the_metrics_that_the_cell_reports(shell):
    found = names(shell, "%%autotrain\nobjective: maximize v|@\n---\nreport(step=1, val_acc=1.0)")
    assert found == {"maximize val_acc"}


def test_backends_are_those_of_this_shell(shell):
    assert names(shell, "%%autotrain x --backend |@") == {"local", "debug"}
    assert names(shell, "%%autotrain\n#| backend: d|@\nx = 1") == {"debug"}


def test_flags_of_the_first_line_are_completed(shell):
    assert names(shell, "%%autotrain x --dr|@") == {"--dry-run"}


def test_code_below_the_header_is_left_to_python(shell):
    assert "objective: " not in names(shell, "%%autotrain\ntrials: 2\n---\nobj|@")


def test_a_header_that_has_begun_is_completed_alone_before_its_end_is_written(shell):
    assert names(shell, "%%autotrain\ntuner: ra|@") == {"random"}
    assert names(shell, "%%autotrain\ntrials: 2\nre|@") == {"resources: ", "returns: ", "retries: "}


def test_a_cell_that_may_be_code_keeps_the_completions_of_python(shell):
    found = names(shell, "%%autotrain\nre|@")
    assert "returns: " in found
    assert "reversed" in found


def test_the_names_of_a_trial_are_completed_in_its_cell(shell):
    assert "trial" in names(shell, "%%autotrain\ntrials: 2\n---\ntri|@")
    assert "trial.report" in names(shell, "%%autotrain\ntrials: 2\n---\ntrial.re|@")


def test_other_cells_are_not_touched(shell):
    assert "objective: " not in names(shell, "obj|@")


def test_installing_twice_adds_one_matcher_and_removing_takes_it_away(shell):
    completion.install(shell, list)
    assert [one.__qualname__ for one in shell.Completer.custom_matchers] == ["autotrain_matcher"]
    completion.remove(shell)
    assert shell.Completer.custom_matchers == []


def test_without_a_list_the_registered_backends_are_offered(shell):
    completion.install(shell, list)
    assert {"local", "debug"} <= names(shell, "%%autotrain --backend |@")


def test_verbs_are_completed_on_a_line_of_their_own(shell):
    assert names(shell, "%autotrain st|@") == {"stacks", "status", "stop"}
    assert names(shell, "x = 1\n%autotrain sho|@") == {"show"}


def test_a_verb_that_takes_an_experiment_offers_the_names_of_experiments(shell):
    assert names(shell, "%autotrain stop dig|@") == {"digits", "digits@2"}
    assert names(shell, "%autotrain compare digits mn|@") == {"mnist"}
    assert names(shell, "%autotrain doctor dig|@") == set()


def test_the_options_of_a_verb_and_their_choices_are_completed(shell):
    assert names(shell, "%autotrain logs digits --st|@") == {"--stderr"}
    assert names(shell, "%autotrain ls --state succ|@") == {"succeeded"}


def test_help_completes_keys_verbs_and_names_of_the_cell(shell):
    assert {"report", "retry", "retries"} <= names(shell, "%autotrain help re|@")


def test_the_names_of_a_trial_are_completed_in_the_code_of_the_cell(shell):
    assert "report" in names(shell, "%%autotrain\ntrials: 2\n---\nfor x in y:\n    rep|@")
    assert "checkpoint" in names(shell, "%%autotrain\nx = 1\nche|@")
    assert "checkpoint" not in names(shell, "che|@")
