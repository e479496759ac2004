"""Where a setting comes from, and where a header ends."""

import pytest

from jupyter_autotrain import header
from jupyter_autotrain.errors import HeaderError


@pytest.fixture
def context(tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "project" / "deep").mkdir(parents=True)
    (tmp_path / "config" / "autotrain.yaml").write_text("concurrency: 2\nretries: 5\nseed: 1\nresources: {cpus: 1}\n")
    (tmp_path / "project" / "autotrain.yaml").write_text("concurrency: 3\nretries: 6\nresources: {memory: 1GB}\n")
    (tmp_path / "project" / "deep" / "base.yml").write_text("concurrency: 4\ntrials: 7\n")
    environ = {"JUPYTER_CONFIG_DIR": str(tmp_path / "config")}
    return header.HeaderContext(cwd=tmp_path / "project" / "deep", environ=environ)


def test_the_nearer_layer_wins_and_sections_are_merged(context):
    cell = "trials: 8\nresources: {gpus: 1}\n---\n"
    found = header.parse_cell("-f base.yml --trials 9", cell, context).header
    assert (found.trials, found.concurrency, found.retries, found.seed) == (9, 4, 6, 1)
    assert (found.resources.cpus, found.resources.memory, found.resources.gpus) == (1, 10**9, 1)


def test_null_takes_back_what_a_weaker_layer_says(context):
    cell = "seed: null\nretries: ~\nresources: {memory: null}\nship: null\nenv: {A: b, C: null}\n---\n"
    found = header.parse_cell("", cell, context).header
    assert (found.seed, found.retries, found.resources.memory, found.resources.cpus) == (None, 0, None, 1)
    assert (found.ship.files, found.env) == ((), {"A": "b"})
    assert str(header.explain("seed", context, "", cell)) == "seed = none (default)"


def test_a_key_without_a_value_is_a_fault_and_not_null(context):
    with pytest.raises(HeaderError, match="line 2: seed: ''; expected an integer"):
        header.parse_cell("", "seed:\n---\n", context)


@pytest.mark.parametrize(
    ("key", "line", "cell", "told"),
    [
        ("seed", "", "", "seed = 1 ({config}/autotrain.yaml line 3)"),
        ("retries", "", "", "retries = 6 (../autotrain.yaml line 2)"),
        ("trials", "-f base.yml", "", "trials = 7 (base.yml line 2)"),
        ("trials", "", "\ntrials: 8\n---\n", "trials = 8 (the cell's line 3)"),
        ("trials", "--trials 9", "trials: 8\n---\n", "trials = 9 (the magic line)"),
        ("resources.memory", "", "", "resources.memory = 1GB (../autotrain.yaml line 3)"),
        ("early_stop", "", "", "early_stop = none (default)"),
    ],
)
def test_explain_says_where_a_value_comes_from(context, key, line, cell, told):
    told = told.format(config=context.environ["JUPYTER_CONFIG_DIR"])
    assert str(header.explain(key, context, line, cell)) == told


def test_a_fault_in_a_file_names_the_file(context):
    (context.cwd / "base.yml").write_text("# base\ntrails: 1\n")
    with pytest.raises(HeaderError, match=r"base.yml line 2: unknown key 'trails'; did you mean 'trials'\?"):
        header.parse_cell("-f base.yml", "", context)


def test_a_missing_file_is_a_fault_of_the_line(context):
    with pytest.raises(HeaderError, match=r"line 1: none.yml cannot be read: No such file"):
        header.parse_cell("-f none.yml", "", context)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("--gpsu 1", "line 1: unknown flag '--gpsu'; did you mean '--gpus'?"),
        ("--backend", "line 1: --backend without a value; expected --backend VALUE"),
        ("--wait=1", "line 1: --wait with a value; expected --wait alone"),
        ("a b", "line 1: NAME b: name was given before as 'a'; expected one; remove one"),
        ("'a", 'line 1: "\'a": No closing quotation; expected closed quotes; close them'),
        ("--trials x", "line 1: trials: 'x'; expected an integer"),
    ],
)
def test_a_bad_flag_is_a_fault_of_line_1(line, told):
    with pytest.raises(HeaderError) as caught:
        header.parse_cell(line, "x = 1", header.HeaderContext())
    assert caught.value.faults == (told,)


def test_flags_are_read_in_every_spelling():
    found = header.parse_cell(
        "run --gpus=2 -j3 --objective maximize acc --wait --dry-run # note", "", header.HeaderContext()
    )
    assert (found.header.name, found.header.resources.gpus, found.header.concurrency) == ("run", 2, 3)
    assert str(found.header.objective[0].metric) == "acc"
    assert (found.flags.wait, found.flags.dry_run) == (True, True)


@pytest.mark.parametrize(
    ("cell", "trials", "code", "code_line"),
    [
        ("x = 1", None, "x = 1", 2),
        ("trials: 3\n---\nx = 1", 3, "x = 1", 4),
        ("---\ntrials: 3\n---\nx = 1", 3, "x = 1", 5),
        ("---\nx = 1", None, "x = 1", 3),
        ("\n#| trials: 3\n#|\n#| retries: 1\nx = 1", 3, "x = 1", 6),
        ("#| ---\n#| trials: 3\n#| ---\nx = 1", 3, "x = 1", 5),
        ("trials: 3\r\n---\r\nx = 1\r\n", 3, "x = 1\n", 4),
        ("text = '''\n---\n'''", None, "text = '''\n---\n'''", 2),
        ("!ls\ntext = '''\n---\n'''", None, "!ls\ntext = '''\n---\n'''", 2),
        ("trials: 3\n---\ntext = '''\n---\n'''", 3, "text = '''\n---\n'''", 4),
        ("# --- not a rule\nx = 1", None, "# --- not a rule\nx = 1", 2),
    ],
)
def test_the_end_of_the_header_is_found(cell, trials, code, code_line):
    found = header.parse_cell("", cell, header.HeaderContext())
    assert (found.header.trials, found.code, found.code_line) == (trials, code, code_line)


def test_a_header_without_its_end_that_is_python_too_is_told_so():
    with pytest.raises(HeaderError, match="line 2: 'trials' looks like a header; expected a line `---` below it"):
        header.parse_cell("", "trials: 3\nreport(acc=1)", header.HeaderContext())
    assert header.parse_cell("", "name: str\ntrials: int = 3", header.HeaderContext()).header.trials is None


def test_a_header_that_is_not_ended_is_told_so():
    with pytest.raises(HeaderError, match="line 2: 'objective' looks like a header; expected a line `---` below it"):
        header.parse_cell("", "objective: maximize acc\nimport x", header.HeaderContext())


def test_code_above_a_rule_is_told_so():
    with pytest.raises(HeaderError, match="line 2: 'import torch'"):
        header.parse_cell("", "import torch\n---\nx = 1", header.HeaderContext())


@pytest.mark.parametrize("is_absolute", [True, False])
@pytest.mark.parametrize(
    "text", ["the password is hunter2\n", "password: hunter2\n", '{"password": "hunter2"}', "[a]\npassword = hunter2\n"]
)
def test_a_requested_file_from_elsewhere_is_not_quoted(tmp_path, is_absolute, text):
    folder = tmp_path / "notebooks"
    folder.mkdir()
    (tmp_path / "notes.txt").write_text(text)
    path = str(tmp_path / "notes.txt") if is_absolute else "../notes.txt"
    with pytest.raises(HeaderError) as caught:
        header.parse_cell(f"-f {path}", "x = 1", header.HeaderContext(cwd=folder, environ={"HOME": str(tmp_path)}))
    assert "notes.txt cannot be read as settings" in str(caught.value)
    assert "password" not in str(caught.value)
