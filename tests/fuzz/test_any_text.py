"""Whatever a person writes is done or told in clauses: no other Python error comes out."""

import ast
import string

from hypothesis import given
from hypothesis import strategies as st

from jupyter_autotrain import capture, header, verbs
from jupyter_autotrain.agent.json import from_json, to_json
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import AutotrainError, CaptureError, HeaderError, ShipError
from jupyter_autotrain.header import aliases
from jupyter_autotrain.verbs.grammar import grammar

WORDS = (
    "choice(1, 2)",
    "uniform(0, 1e308)",
    "uniform(-1e308, 1e308)",
    "quniform(0, 1e300, 1e-300)",
    "loguniform(1e-320, 1)",
    "randint(0, 99999999999999999999)",
    "{_type: choice, _value: [1, {_name: a, x: [1]}]}",
    "{min: 1, max: 2}",
    "9" * 5000,
    "1e999",
    "-1e999",
    ".inf",
    "1h30m",
    "16GiB..",
    "99999999TB",
    "**.csv",
    "**/**/x",
    "[z-a]",
    "../x",
    "/etc/passwd",
    "a@9",
    "maximize max(val_acc)",
    "minimize mean(loss, last=5)",
    "maximize",
    "mean(",
    "{a: 1}",
    "[[[[",
    "]]",
    "{",
    "}",
    "~",
    "---",
    "!!python/object:os.system",
    "&a",
    "*a",
    "<<: *a",
    "? x",
    "'",
    '"',
    "\\",
    "%",
    "#",
    "|",
    ">",
    "\t",
    "\x00",
    "\ud800",
    "é",
    "grid",
    "tpe",
    "batch",
    "asha",
    "2x8xH100",
    "null",
    "yes",
    "1_000",
    "0x10",
    "1.5",
    "-1",
    "0",
)
KEYS = st.sampled_from(
    [*header.known_keys(), "trialConcurrency", "searchSpace", "trainingService", "tuner.classArgs", "x"]
)
VALUES = (
    st.sampled_from(WORDS) | st.text(max_size=20) | st.builds("".join, st.lists(st.sampled_from(WORDS), max_size=4))
)
LINES = st.builds(
    "{}{}{}: {}".format,
    st.sampled_from(["", "", "  ", "#| ", "- "]),
    st.sampled_from(["", "", "  "]),
    KEYS.map(lambda key: key.split(".")[-1]),
    VALUES,
) | st.text(max_size=30)
SECTIONS = st.builds(
    "{}: {{{}: {}}}".format,
    st.sampled_from(["resources", "budget", "local", "search", "env", "ship"]),
    KEYS.map(lambda key: key.split(".")[-1]),
    VALUES,
)
CELLS = st.lists(LINES | SECTIONS, max_size=8).map("\n".join)
FLAG_LINES = st.lists(st.sampled_from([*aliases.spellings(), *WORDS]) | st.text(max_size=8), max_size=5).map(" ".join)
CODE = st.lists(
    st.sampled_from(
        [
            "x = 1",
            "import os",
            "def f(): return y",
            "class A: z",
            "for i in",
            "  pass",
            "await x",
            "from __future__ import a",
            "global x",
            "'''",
            "open('a.csv')",
            "nonlocal q",
            "return",
            "x: int",
            "lambda: (",
            "%matplotlib inline",
            "!ls",
            "print(q)",
        ]
    )
    | st.text(max_size=20),
    max_size=6,
).map("\n".join)


def told(error, most_lines=10_000):
    """Expect an error that a person can read."""
    assert str(error).strip()
    assert len(str(error).splitlines()) <= most_lines
    assert len(str(error)) < 20_000
    assert all(c in "\n\t" or c.isprintable() or ord(c) >= 0xA0 for c in str(error))


def test_a_cell_is_a_spec_that_survives_json_or_clean_faults(examples):
    @examples(400)
    @given(cell=CELLS, line=FLAG_LINES, ruled=st.booleans())
    def holds(cell, line, ruled):
        try:
            read = header.parse_cell(line, f"{cell}\n---\nx = 1" if ruled else cell, header.HeaderContext()).header
            spec = read.to_spec(bundle=Bundle(), name="x")
        except HeaderError as error:
            told(error, most_lines=6)
        else:
            assert from_json(ExperimentSpec, to_json(spec)) == spec

    holds()


PLAIN = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.just(10**4000)
    | st.just(10**400)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=4)
    | st.sampled_from(WORDS)
    | st.builds(object)
    | st.just(len)
)
SETTINGS = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5) | KEYS, inner, max_size=3),
    max_leaves=6,
)


def test_settings_given_in_python_are_a_header_or_clean_faults(examples):
    deep = []
    deep.append(deep)

    @examples(300)
    @given(given_=st.dictionaries(KEYS.filter(lambda key: "." not in key), SETTINGS | st.just(deep), max_size=4))
    def holds(given_):
        try:
            header.from_mapping(given_).to_spec(bundle=Bundle(), name="x")
        except HeaderError as error:
            told(error)

    holds()


def test_completion_of_any_cell_gives_what_fits(examples):
    @examples(300)
    @given(cell=CELLS, cut=st.integers(0, 300), line=FLAG_LINES)
    def holds(cell, cut, line):
        text = f"%%autotrain {line}\n{cell}"
        found = header.completions(text, min(cut, len(text)), ("local",))
        assert 0 <= found.start <= min(cut, len(text))

    holds()


def test_any_code_and_any_pattern_is_captured_or_refused(examples, tmp_path):
    (tmp_path / "a.csv").write_text("1")

    @examples(250)
    @given(code=CODE, patterns=st.lists(VALUES, max_size=2), parameters=st.sets(st.sampled_from(["x", "y"])))
    def holds(code, patterns, parameters):
        try:
            captured = capture.capture(code, {"y": [1]}, cwd=tmp_path, ship=patterns, parameters=parameters)
        except (CaptureError, ShipError) as error:
            told(error)
        else:
            ast.parse(captured.script)

    holds()


ARGUMENTS = (
    st.sampled_from(
        [
            "x",
            "x@1",
            "x@2",
            "-1",
            "_",
            "-9",
            "--trial",
            "--json",
            "-n",
            "--state",
            "--raw",
            "--stderr",
            "-o",
            "--yes",
            "--older",
            "--timeout",
            "1",
            "0",
            "99",
            "9" * 30,
            "9" * 5000,
            "nan",
            "inf",
            "-inf",
            "1e400",
            "a@" + "9" * 40,
            "../..",
            "x\x00y",
            "\ud800",
        ]
    )
    | st.text(string.printable, max_size=6)
    | st.text(max_size=4)
)


def test_any_line_of_a_verb_is_done_or_told(examples, home, tmp_path):
    with_experiment(home)
    asks = {"stop", "retry", "resume", "update", "continue"}  # a manager
    slow = {"calibrate", "clean", "plan", "doctor", *asks}  # or they look at the machine

    def nothing(*_):
        return None

    command = verbs.CommandContext(
        home=home,
        environ={"HOME": str(tmp_path)},
        cwd=tmp_path,
        write_raw=nothing,
        show=nothing,
        keep=nothing,
        now=lambda: 5.0,
        evaluate=nothing,
        show_plan=nothing,
    )

    @examples(250)
    @given(
        verb=st.sampled_from(sorted(set(grammar()) - slow)) | st.text(max_size=6), words=st.lists(ARGUMENTS, max_size=4)
    )
    def holds(verb, words):
        if verb in slow:
            return
        try:
            verbs.run([verb, *words], command)
        except AutotrainError as error:
            told(error)

    holds()


def with_experiment(home):
    """Add an ended experiment with one trial."""
    from jupyter_autotrain.agent.states import TrialState
    from jupyter_autotrain.store import Store

    with Store.open(home) as store:
        store.add_experiment("e1", ExperimentSpec("x", Bundle()), 1.0)
        store.add_trial("e1", 1, {"lr": 0.1}, 1.0)
        for state in (TrialState.PREPARING, TrialState.RUNNING, TrialState.SUCCEEDED):
            store.change_state("e1", 1, state, 2.0)
        store.close_experiment("e1", 3.0)
    home.trial("e1", 1, 1).mkdir(parents=True)
