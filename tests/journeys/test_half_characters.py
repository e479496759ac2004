"""Half a pair of UTF-16 (a lone surrogate), as JSON and YAML can spell: wherever it stands, it is kept or refused."""

from __future__ import annotations

import os
import subprocess
import sys

from IPython.utils.capture import capture_output

from jupyter_autotrain.client import experiments
from jupyter_autotrain.errors import AutotrainError

HALF = "\ud800"
REFUSED = [
    f"%%autotrain\n---\nx = '{HALF}'",
    f"%%autotrain\n---\nx = 1  # {HALF}",
    f"%%autotrain\nx = '{HALF}'",
    f"%%autotrain --dry-run\n---\nx = '{HALF}'",
    f"%%autotrain\n# {HALF}\nname: a\n---\nx = 1",
    f"%%autotrain\nname: 'a{HALF}'\n---\nx = 1",
    f"%%autotrain {HALF}\n---\nx = 1",
    f"%%autotrain --name a{HALF}\n---\nx = 1",
    f"%%autotrain -f a{HALF}\n---\nx = 1",
    *(
        f'%%autotrain\n{header}\n---\nreport(a=1)'
        for header in (
            'name: "a\\ud800"', 'env: {A: "\\ud800"}', 'env: {"A\\ud800": 1}', 'search: {a: ["\\ud800", 1]}',
            'objective: "maximize a\\ud800"', 'data: {t: "./\\ud800"}', 'ship: ["\\ud800*"]', 'secrets: ["A\\ud800"]',
            'backend: "\\ud800"', 'backend: {type: ssh, hosts: ["h\\ud800"]}', 'environment: {python: "/x\\ud800"}',
            'environment: {image: "\\udcff"}', 'returns: ["v\\ud800"]', 'hooks: {a: {command: ["sh", "\\ud800"]}}',
            'kubernetes: {namespace: "\\ud800"}',
        )
    ),
    *(
        f"%autotrain {words}"
        for words in (
            f"logs {HALF}", f"help {HALF}", f"check {HALF}", f"backends add a{HALF} --type ssh h",
            f"backends add lab --type ssh h{HALF}", f"backends trust lab {HALF}", f"backends trust-project {HALF}",
            f"config --explain {HALF}", f"pull -o {HALF}", HALF, f"stop {HALF}", f"export -o {HALF}", f"--{HALF}",
        )
    ),
    "at.submit('x = 1', name='a\\ud800')",
    "at.submit('x = \"\\ud800\"')",
    "at.submit('x = 1', env={'A': '\\ud800'})",
    "at.submit('x = 1', search={'a': ['\\ud800', 1]})",
    "at.submit('x = 1', backend={'type': 'ssh', 'hosts': ['\\udcff']})",
    "at.submit('x = 1', **{'a\\ud800': 1})",
    "at.attach('\\ud800')",
]  # fmt: skip


def test_it_is_refused_in_words_that_can_be_printed(notebook):
    notebook.run("import jupyter_autotrain as at")
    for source in REFUSED:
        with capture_output():  # not kept in IPython's own history, which cannot hold it
            result = notebook.shell.run_cell(source, store_history=False)
        error = result.error_in_exec or result.error_before_exec
        assert isinstance(error, AutotrainError), source.encode("unicode_escape")
        assert str(error).encode()
        assert len(str(error).splitlines()) <= 6


def test_what_a_cell_works_with_is_as_it_is_in_the_notebook(notebook, home):
    notebook.run("value = 'a\\ud800'\ntable = {'\\udcff': 1}")
    code = (
        "print(ascii(value), ascii(table))\nprint('b\\ud800')\nreport(**{'a\\ud800': 1, 'loss': 2})\n"
        "import warnings\nwarnings.warn('c\\ud800')\nraise ValueError('d\\ud800')"
    )
    result, _ = notebook.run(f"%%autotrain halves\n---\n{code}")
    result.raise_error()
    sent = notebook.value("_")
    assert sent.wait(timeout_s=240)
    assert sent.logs().splitlines()[0] == "'a\\ud800' {'\\udcff': 1}"
    assert [(row["name"], row["value"]) for row in sent.metrics()] == [("loss", 2.0)]
    assert "a lone surrogate" in "\n".join(sent.warnings())
    assert sent.trials[0].reason.startswith("ValueError: d?")
    for words in ("why", "show", "logs", "ls", "best"):
        _, shown = notebook.run(f"%autotrain {words} {'' if words == 'ls' else 'halves'}")
        assert shown.encode()
    assert any(experiment.id == sent.id for experiment in experiments(home=home))


def test_a_folder_whose_name_is_no_utf_8_is_no_hindrance(home, tmp_path):
    folder = os.path.join(os.fsencode(tmp_path), b"not \xff utf-8")  # noqa: PTH118 - bytes
    os.mkdir(folder)  # noqa: PTH102 - bytes
    code = (
        'import jupyter_autotrain as at\nsent = at.submit(\'open("made", "w").close()\\nreport(a=1)\')\n'
        "assert sent.wait(240)\nprint(sent.state, [name for name in sent.pull('got')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "JUPYTER_AUTOTRAIN_HOME": str(home.root)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "SUCCEEDED ['made']"
