"""Any text gives a valid header or clean faults with a line of the cell."""

import re

from hypothesis import example, given, settings
from hypothesis import strategies as st

from jupyter_autotrain import header
from jupyter_autotrain.core.spec import Bundle
from jupyter_autotrain.errors import HeaderError

KEYS = st.sampled_from(
    [*(key.split(".")[-1] for key in header.known_keys()), "trailz", "trialConcurrency", "searchSpace"]
)
BAD = ["'", "[", "&a 1", "*a", "!!x 1", "{x: uniform(1, 0)}", "choice(", "1" * 30, "9" * 5000, "\t", "|", ">", "~"]
GOOD = ["3", "-1", "1e-4", "[1, 2]", "{a: 1}", "maximize x", "yes", "8GB", "30m", "12:30:00", "uniform(0, 1)"]
VALUES = st.sampled_from([*BAD, *GOOD, "{gpus: 1}", "{x: [1, 2]}"]) | st.text(max_size=12)
LINES = st.builds("{}{}: {}".format, st.sampled_from(["", "  ", "#| "]), KEYS, VALUES) | st.text(max_size=20)
CELLS = st.lists(LINES, max_size=6).map("\n".join)
WORDS = st.sampled_from(["--gpus", "-j", "-j2", "--wait", "-f", "--", "-", "x", "'", "--trials=3", "--seed"])
FLAGS = st.lists(WORDS | st.text(max_size=6), max_size=4).map(" ".join)


def fault_of(line, body):
    """Return the error of a cell, or None when it becomes a spec."""
    try:
        header.parse_cell(line, body, header.HeaderContext()).header.to_spec(bundle=Bundle(), name="x")
    except HeaderError as error:
        return error
    return None


@settings(max_examples=150)
@given(cell=CELLS, line=FLAGS, ruled=st.booleans())
@example(cell="a: \x85b", line="", ruled=True)
@example(cell='a: "\\UFFFFFFFF"', line="", ruled=True)
@example(cell="[" * 3000, line="", ruled=True)
@example(cell="\ud800: 1", line="", ruled=True)
@example(cell="search: {x: choice({)}", line="", ruled=True)
@example(cell="resources:\nsearch:\nship:\nenv:\nsecrets:", line="", ruled=True)
def test_any_text_gives_a_spec_or_faults_with_a_line_of_the_cell(cell, line, ruled):
    body = f"{cell}\n---\nx = 1" if ruled else cell
    count = 1 + len(body.split("\n"))
    error = fault_of(line, body)
    if error is not None:
        assert len(str(error).splitlines()) <= 6
        for fault in error.faults:
            found = re.match(r"line (\d+): .", fault)
            assert found, fault
            assert 1 <= int(found[1]) <= count


FINE = st.sampled_from(["retries: 1", "seed: 3", "# note", "", "env:\n  A: 1"])
FAULTY = st.sampled_from(["trailz: 3", "trials: many", "tuner: best", "timeout: soon", "no colon here"])


@settings(max_examples=25)
@given(before=st.lists(FINE, unique=True, max_size=5), bad=FAULTY)
def test_the_line_of_a_fault_is_the_line_it_was_written_on(before, bad):
    rows = "\n".join(before).split("\n") if before else []
    error = fault_of("", "\n".join([*rows, bad, "concurrency: 1", "---"]))
    assert error is not None
    assert [int(fault.split(":")[0].removeprefix("line ")) for fault in error.faults] == [len(rows) + 2]


@settings(max_examples=100)
@given(cell=CELLS, cut=st.integers(0, 200))
def test_completion_never_fails_and_replaces_what_stands_before_the_cursor(cell, cut):
    text = f"%%autotrain\n{cell}"
    cursor = min(cut, len(text))
    found = header.completions(text, cursor, ("local",))
    assert 0 <= found.start <= cursor
    assert all(match.startswith(text[found.start : cursor]) for match in found.matches)
