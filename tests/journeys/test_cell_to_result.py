"""A cell's text goes in; its metrics, its objects and plain words come out, through the real magic and backend."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import jupyter_autotrain as at
from jupyter_autotrain import cli

SEARCH = """\
%%autotrain square -j 2 --wait
objective: maximize score
search:
  x: choice(1, 2, 3)
tuner: grid
returns: [answer]
---
answer = {"x": x, "square": square(x)}
report(score=answer["square"])
print("squared", x)"""


def test_a_cell_is_searched_with_helpers_of_the_notebook_and_its_best_object_comes_back(notebook):
    notebook.run("def square(number):\n    return number * offset\n")
    notebook.run("offset = 10")
    result, shown = notebook.run(SEARCH)
    assert result.success, shown
    assert "square" in shown
    experiment = notebook.value("_")
    assert isinstance(experiment, at.Experiment)
    assert (experiment.name, experiment.state) == ("square", "SUCCEEDED")
    assert sorted(trial.value for trial in experiment.trials) == [10, 20, 30]
    notebook.run("%autotrain load square answer")
    assert notebook.value("answer") == {"x": 3, "square": 30}
    _, shown = notebook.run("%autotrain logs square --trial 1")
    assert re.fullmatch(r"square, trial 1, stdout:\nsquared \d\n", shown)


def test_the_same_cell_is_an_ordinary_cell_without_its_first_line_and_header(notebook):
    notebook.run("def report(**metrics):\n    reported.update(metrics)\nreported = {}")
    notebook.run("x = 3\nreport(score=x * x)")
    assert notebook.value("reported") == {"score": 9}


def test_a_literal_in_the_cell_is_overridden_by_the_search_and_the_trial_says_so(notebook):
    notebook.run("%%autotrain over --wait\ntrials: 1\nsearch:\n  lr: choice(0.5)\n---\nlr = 0.1\nreport(lr=lr)")
    experiment = notebook.value("_")
    assert [row["value"] for row in experiment.metrics()] == [0.5]
    assert "0.1" in experiment.logs()
    assert "0.5" in experiment.logs()


def test_a_dry_run_shows_everything_and_stores_nothing(notebook):
    before = len(at.experiments())
    _, shown = notebook.run("%%autotrain --dry-run\nreport(loss=1.0)")
    assert "report(loss=1.0)" in shown
    assert "nothing was sent" in shown
    assert len(at.experiments()) == before


def test_a_dry_run_shows_which_variables_the_trial_gets_and_which_look_like_secrets(notebook, monkeypatch):
    monkeypatch.setenv("LC_TIME", "C")
    monkeypatch.setenv("https_proxy", "http://me:hidden-word@proxy:3128")
    monkeypatch.setenv("CANARY", "yes")
    _, shown = notebook.run("%%autotrain --dry-run\nreport(loss=1.0)")
    assert "LC_TIME=C" in shown
    assert "CANARY=" not in shown
    assert "`pass_env: [CANARY]`" in shown
    assert "no cell names: write `secrets: [https_proxy]`" in shown
    assert "hidden-word" not in shown


def test_all_faults_of_a_header_are_told_at_once_with_lines_and_nearest_names(notebook):
    before = len(at.experiments())
    lines = notebook.fails("%%autotrain\nobjectve: maximize acc\ntrials: many\n---\nreport(acc=1)")
    text = "\n".join(lines)
    assert "line 2" in text
    assert "objective" in text
    assert "line 3" in text
    assert len(lines) <= 6
    assert len(at.experiments()) == before


def test_a_cell_without_code_is_refused(notebook):
    assert "no code" in notebook.fails("%%autotrain\ntrials: 1\n---\n# nothing yet")[0]


def test_what_cannot_travel_is_refused_by_name_before_anything_is_sent(notebook):
    notebook.run("numbers = (n for n in range(3))")
    text = "\n".join(notebook.fails("%%autotrain\nreport(total=sum(numbers))"))
    assert "numbers" in text
    assert "generator" in text


def test_a_key_in_a_variable_or_in_the_cell_is_refused_and_nothing_is_stored(notebook):
    before = len(at.experiments())
    key = "hf_" + "aB3xK9" * 6
    notebook.run(f"hf_token = '{key}'")
    for cell in ("%%autotrain\nreport(n=len(hf_token))", f"%%autotrain\nreport(n=len('{key}'))"):
        text = "\n".join(notebook.fails(cell))
        assert "`secrets: [" in text
        assert key not in text
    assert len(at.experiments()) == before


def test_a_crash_names_the_line_of_the_cell_and_keeps_what_was_reported(notebook):
    notebook.run("%%autotrain crash --wait\nreport(step=0, loss=2.0)\nx = 1\nraise ValueError('no label 11')")
    experiment = notebook.value("_")
    assert experiment.state == "FAILED"
    reason = experiment.trials[0].reason
    assert "no label 11" in reason
    assert re.search(r"line 4|:4", reason), reason
    assert [row["value"] for row in experiment.metrics()] == [2.0]
    _, shown = notebook.run("%autotrain why crash")
    assert "no label 11" in shown


def test_an_objective_that_is_never_reported_fails_the_trial_with_that_reason(notebook):
    cell = "objective: maximize acc\n---\nmetrics = {'loss': 1.0}\nreport(**metrics)"
    notebook.run(f"%%autotrain quiet --wait\n{cell}")
    experiment = notebook.value("_")
    assert experiment.state == "FAILED"
    assert "acc" in experiment.trials[0].reason


def test_an_objective_that_no_report_names_is_told_before_anything_is_sent(notebook):
    lines = notebook.fails("%%autotrain unsent\nobjective: maximize val_acc\n---\nreport(val_accuracy=1.0)")
    text = "\n".join(lines)
    assert "line 4" in text
    assert "Did you mean 'val_accuracy'?" in text
    assert len(lines) <= 6
    assert "unsent" not in {experiment.name for experiment in at.experiments()}


def test_an_exported_script_gives_the_same_metrics_alone_in_an_empty_folder(notebook, tmp_path):
    notebook.run("def square(number):\n    return number * number")
    notebook.run("%%autotrain exported --wait\nsearch: {x: 'choice(7)'}\n---\nreport(score=square(x))")
    notebook.run("%autotrain export exported -o alone.py")
    empty = tmp_path / "empty"
    empty.mkdir()
    script = Path("alone.py").rename(empty / "alone.py")
    done = subprocess.run(
        [sys.executable, "-I", script.name], cwd=empty, check=True, capture_output=True, text=True, timeout=240
    )
    assert "49" in done.stdout


def test_an_unknown_experiment_is_told_with_the_nearest_name(notebook):
    notebook.run("%%autotrain findme --wait\nreport(loss=1.0)")
    assert "findme" in "\n".join(notebook.fails("%autotrain show findmee"))


def test_an_unknown_verb_is_told_with_the_nearest_one(notebook):
    assert "'status'" in "\n".join(notebook.fails("%autotrain statsu"))


def test_verbs_say_when_there_is_nothing_to_do(notebook, tmp_path):
    notebook.run("%%autotrain idle --wait\nreport(loss=1.0)")
    assert notebook.run("%autotrain why idle")[1] == "idle is SUCCEEDED: no trial is waiting and none failed.\n"
    assert "no failed or cancelled trial" in notebook.run("%autotrain retry idle")[1]
    assert "left no files" in notebook.run("%autotrain pull idle")[1]
    assert "Would delete 1 experiment (" in notebook.run("%autotrain clean idle")[1]
    assert not any(path.name.startswith("idle") for path in tmp_path.iterdir())


def test_files_that_a_cell_writes_are_pulled_and_those_that_came_with_it_are_not(notebook, tmp_path):
    (tmp_path / "data.txt").write_text("here")
    notebook.run(
        "%%autotrain writes --wait\nship: [data.txt]\nreturns: [answer]\n---\n"
        "import os\nos.mkdir('out')\nopen('out/model.txt', 'w').write(open('data.txt').read())\nanswer = 42"
    )
    assert notebook.run("%autotrain pull writes -o here")[1].startswith("2 files of trial 1 copied to here")
    assert sorted(path.name for path in (tmp_path / "here").rglob("*.*")) == ["answer.pkl", "model.txt"]
    assert (tmp_path / "here" / "out" / "model.txt").read_text() == "here"


def test_what_a_cell_writes_into_folders_of_the_notebook_comes_back_to_the_same_places(notebook, tmp_path):
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "old.txt").write_text("old")
    (tmp_path / "log.csv").write_text("head\n")
    notebook.run(
        "%%autotrain places --wait\ntuner: grid\nsearch: {width: [1, 2]}\nobjective: maximize score\n---\nimport os\n"
        "with open('log.csv', 'a') as log:\n    log.write(f'{width}\\n')\n"
        "with open('models/m.txt', 'w') as model:\n    model.write(f'width {width}')\nreport(score=width)"
    )
    listed = notebook.run("%autotrain pull places --list")[1]
    assert listed.startswith("2 files of trial 2:\n  log.csv  (7 B)\n  models/m.txt  (7 B)")
    for trial in (1, 2):
        notebook.run(f"%autotrain pull places --trial {trial}")
        folder = tmp_path / f"places-trial-{trial}"
        assert (folder / "log.csv").read_text() == f"head\n{trial}\n"
        assert (folder / "models" / "m.txt").read_text() == f"width {trial}"
    assert "1 other file would be overwritten" in "\n".join(notebook.fails("%autotrain pull places --in-place"))
    assert (tmp_path / "log.csv").read_text() == "head\n"
    notebook.run("%autotrain pull places --in-place --overwrite")
    assert (tmp_path / "models" / "m.txt").read_text() == "width 2"
    assert (tmp_path / "log.csv").read_text() == "head\n2\n"
    assert (tmp_path / "models" / "old.txt").read_text() == "old"


def test_a_file_beside_the_notebook_is_found_or_its_ship_line_is_told(notebook, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x.txt").write_text("7")
    code = "from pathlib import Path\nx = int((Path(__file__).parent / 'data' / 'x.txt').read_text())\nreport(x=x)"
    notebook.run(f"%%autotrain beside --wait\n{code}")
    assert [row["value"] for row in notebook.value("_").metrics()] == [7.0]
    notebook.run("%%autotrain hidden --wait\nopen(chr(100) + 'ata/x.txt')")
    assert "add to the header `ship: [data/x.txt]`" in " ".join(notebook.run("%autotrain why hidden")[1].split())


def test_refused_reports_are_told_by_wait_by_show_and_by_the_receipt(notebook):
    told = "2 warnings in trial 1; first: acc is 'high' (str), not one number; it was not kept."
    _, waited = notebook.run("%%autotrain refused --wait\nfor _ in range(2): report(acc='high', loss=1)")
    assert told in waited
    assert told in notebook.run("%autotrain show refused")[1]
    assert told in " ".join(notebook.run("%autotrain why refused")[1].split())


def test_a_header_file_is_checked_with_its_own_lines(notebook):
    Path("good.yml").write_text("trials: 2\n")
    Path("bad.yml").write_text("# mine\ntrails: 2\n")
    assert "a valid header" in notebook.run("%autotrain check good.yml")[1]
    assert "bad.yml line 2: unknown key 'trails'" in "\n".join(notebook.fails("%autotrain check bad.yml"))


def test_a_script_cannot_be_exported_into_a_folder_that_is_not_there(notebook):
    notebook.run("%%autotrain lost --wait\nreport(loss=1.0)")
    assert "cannot be written" in notebook.fails("%autotrain export lost -o nowhere/lost.py")[0]


def test_the_list_counts_trials_that_have_ended(notebook):
    notebook.run("%%autotrain endless\nimport time\ntime.sleep(600)")
    row = next(line for line in notebook.run("%autotrain ls")[1].splitlines() if line.startswith("endless"))
    assert " 0/1 " in row
    notebook.run("%autotrain stop endless")
    row = next(line for line in notebook.run("%autotrain ls")[1].splitlines() if line.startswith("endless"))
    assert "CANCELLED  1/1 " in row


def test_an_experiment_that_ends_before_its_trials_are_used_up_says_why(notebook):
    _, shown = notebook.run("%%autotrain poor --wait\ntrials: 4\nbudget: {failures: 1}\n---\n1 / 0")
    assert "poor: FAILED, its budget of 1 failed trial is used up" in shown


def test_what_trials_warn_of_is_told_by_why(notebook):
    notebook.run("%%autotrain wild --wait\nobjective: maximize acc\nreturns: [net]\n---\nreport(acc=float('inf'))")
    shown = notebook.run("%autotrain why wild")[1]
    assert "the objective" in shown.lower()
    assert "Warning in trial 1: acc is inf; infinite values are not kept" in shown
    assert "net" in shown


def test_help_of_a_verb_comes_by_flag_too(notebook):
    assert notebook.run("%autotrain logs -h")[1] == notebook.run("%autotrain help logs")[1]


def test_the_verbs_in_a_shell_tell_the_same(notebook, capsys):
    notebook.run("%%autotrain shell --wait\nobjective: maximize acc\n---\nreport(acc=0.5)")

    def told(*words: str) -> str:
        assert cli.main([*words]) == 0
        return capsys.readouterr().out

    assert "acc (last) = 0.5" in told("best", "shell")
    assert told("schema").startswith("{")
    assert "maximize" in told("help", "objective")
    command = [sys.executable, "-m", "jupyter_autotrain.cli", "ls"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True, timeout=240).stdout
    assert "shell" in listed


def test_a_doctor_in_a_shell_finds_nothing(notebook):
    command = [sys.executable, "-m", "jupyter_autotrain.cli", "doctor"]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=240)
    assert "All checks passed" in done.stdout


def test_files_of_the_home_are_private(notebook, home):
    notebook.run("%%autotrain private --wait\nreport(loss=1.0)")
    find = ["find", home.root, "-ignore_readdir_race", "!", "-type", "l", "-perm", "/077"]
    assert subprocess.run(find, capture_output=True, text=True, check=True).stdout == ""


def test_files_beside_the_notebook_travel_except_those_that_are_told_to_stay(notebook, tmp_path):
    (tmp_path / "data").mkdir()
    for name in ("a.txt", "b.txt", "b.tmp"):
        (tmp_path / "data" / name).write_text(name)
    (tmp_path / "beside.py").write_text("def double(x):\n    return 2 * x\n")
    notebook.run("import beside")
    notebook.run(
        "%%autotrain shipped --wait\nship: {files: [data], ignore: ['*.tmp']}\n---\n"
        "import os\nreport(files=len(os.listdir('data')), doubled=beside.double(21))"
    )
    experiment = notebook.value("_")
    assert experiment.state == "SUCCEEDED", experiment.why()
    assert {row["name"]: row["value"] for row in experiment.metrics()} == {"files": 2, "doubled": 42}
