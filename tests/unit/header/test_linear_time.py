"""The cost of reading a header grows with its length and no faster, whatever it says."""

import contextlib
import time

import pytest

from jupyter_autotrain import header
from jupyter_autotrain.errors import HeaderError
from jupyter_autotrain.header.document import LIMIT_BYTES

SMALL = LIMIT_BYTES // 64  # eight times as much
LARGE = LIMIT_BYTES // 8
MOST = 20.0  # eight times the cost would be linear; sixty-four times quadratic
TRIES = 3
_NOISE_S = 0.002


def repeated(text, size):
    return (text * (size // len(text) + 1))[:size]


def numbered(line, size):
    return "\n".join(line.format(i) for i in range(size // (len(line) + 4)))


HEADERS = {
    "a long token": lambda n: f"name: {'aB1' * (n // 3)}!",
    "a long token of one letter": lambda n: f"trials: {'a' * n}",
    "a long flow list of tokens": lambda n: f"trials: [{repeated('aB3_', n)}]",
    "escaped quotes": lambda n: repeated(r"\'", n),
    "quotes of both kinds": lambda n: repeated("\"'\\", n),
    "open quotes on many lines": lambda n: repeated("a: it's\n", n),
    "hours": lambda n: f"timeout: {repeated('1h', n)}",
    "hours with a fault at the end": lambda n: f"timeout: {repeated('1h', n)}x",
    "digits of a size": lambda n: f"resources: {{memory: {'1' * n}}}",
    "unknown keys": lambda n: numbered("trialz{}: 1", n),
    "unknown keys of a section": lambda n: "resources:\n" + numbered("  cpuz{}: 1", n),
    "one key again and again": lambda n: repeated("trials: 1\n", n),
    "camelCase keys": lambda n: numbered("trialConcurrencyX{}: 1", n),
    "names of a search space": lambda n: "search:\n" + numbered("  x{}: [1, 2]", n),
    "faulty distributions": lambda n: "search:\n" + numbered("  x{}: uniform(2, 1)", n),
    "unknown distributions": lambda n: "search:\n" + numbered("  x{}: unifrom(2, 1)", n),
    "variables": lambda n: "env:\n" + numbered("  X{}: 1", n),
    "secrets": lambda n: "secrets:\n" + numbered("  - X{}", n),
    "files": lambda n: "ship:\n" + numbered("  - x{}.csv", n),
    "an open call in a mapping": lambda n: f"search: {{x: choice({repeated('1, ', n)}}}",
    "an open call in a list": lambda n: f"search: [choice({repeated('1, ', n)}]",
    "a call with many brackets": lambda n: f"search:\n  x: choice({repeated(') ', n)}x",
    "options of a choice": lambda n: f"search:\n  x: choice({repeated('1, ', n)}1)",
    "open brackets": lambda n: "a: " + "[" * n,
    "open braces": lambda n: "a: " + "{" * n,
    "nested keys": lambda n: "\n".join(" " * i + "a:" for i in range(int((2 * n) ** 0.5))),
    "dashes": lambda n: repeated("- ", n),
    "spaces": lambda n: f"name: a{' ' * n}b",
    "blank lines": lambda n: f"name: a{chr(10) * n}b: 1",
    "comments": lambda n: repeated("# x\n", n),
    "a block of text": lambda n: "name: |\n" + repeated("  x\n", n),
    "a quoted text with escapes": lambda n: f'name: "{repeated(chr(92) + "n", n)}"',
    "an open quoted text": lambda n: f'name: "{"a b " * (n // 4)}',
    "a plain text of many lines": lambda n: "name: a\n" + repeated("  b\n", n),
    "lines that are not YAML": lambda n: repeated("a: b: c\n", n),
    "anchors": lambda n: repeated("a: &x 1\n", n),
    "tags": lambda n: f"a: !!{'x' * n} 1",
    "colons": lambda n: ":" * n,
    "question marks": lambda n: repeated("? ", n),
    "controls": lambda n: repeated("\x01\n", n),
    "an objective": lambda n: f"objective: maximize {'a' * n}",
    "words of an objective": lambda n: f"objective: {repeated('a ', n)}",
    "minus signs": lambda n: "x = " + "-" * n + "1",
    "parentheses of code": lambda n: "x = " + "(" * n,
}


def cpu_s(read, text):
    """Return the time of one run, by the clock that other processes do not move."""
    begun = time.thread_time()
    read(text)
    return max(time.thread_time() - begun, _NOISE_S)


def costs_what_its_length_says(read, text_of):
    """Measured again only where it seems not to: a run may be disturbed."""
    for _ in range(TRIES):
        small_s = cpu_s(read, text_of(SMALL))
        large_s = cpu_s(read, text_of(LARGE))
        if large_s / small_s < MOST:
            return True
    return False


def parse(text):
    with contextlib.suppress(HeaderError):
        header.parse_cell("", f"{text}\n---\nx = 1", header.HeaderContext())


@pytest.mark.parametrize("kind", HEADERS)
def test_a_header_costs_what_its_length_says(kind):
    assert costs_what_its_length_says(parse, HEADERS[kind])


LINES = {
    "words": lambda n: repeated("a ", n),
    "flags": lambda n: repeated("--gpuz ", n),
    "one word": lambda n: "a" * n,
    "quotes": lambda n: repeated("'a' ", n),
    "an open quote": lambda n: "'" + "a" * n,
}


@pytest.mark.parametrize("kind", LINES)
def test_a_magic_line_costs_what_its_length_says(kind):
    def read(line):
        with pytest.raises(HeaderError):
            header.parse_cell(f"--trials=x {line}", "", header.HeaderContext())

    assert costs_what_its_length_says(read, LINES[kind])


COMPLETIONS = {
    "a long word": lambda n: f"search:\n  x: {'a' * n}!",
    "open brackets": lambda n: f"search: {'{a: [' * (n // 5)}",
    "a long key": lambda n: f"search: {{{'a' * n}",
    "rows": lambda n: repeated("trials: 1\n", n),
    "a report of one word": lambda n: f"objective: m\n---\nreport({'a' * n})",
    "reports": lambda n: f"objective: m\n---\n{repeated('report(', n)}",
    "blank lines below a name": lambda n: f"search:\n  x: 1\n---\na{chr(10) * n}",
}


@pytest.mark.parametrize("kind", COMPLETIONS)
def test_completing_costs_what_the_cell_is_long(kind):
    def complete(text):
        cell = f"{header.MAGIC}\n{text}"
        header.completions(cell, len(cell), ("local",))
        header.completions(cell, len(header.MAGIC) + 14, ("local",))

    assert costs_what_its_length_says(complete, COMPLETIONS[kind])


@pytest.mark.parametrize("row", ["# y", "", " ", "#| y", "key: 1", "a b", "# token = 'x'", "- x"])
def test_a_header_over_64_kb_is_refused_at_once(row):
    rows = f"{row}\n" * (1_000_000 // (len(row) + 1))
    text = f"{rows}x = 1" if row.startswith("#|") else f"name: x\n{rows}---\nx = 1"
    begun_s = time.thread_time()
    with pytest.raises(HeaderError, match=r"^line 2: a header of \d{3,4} kB; expected at most 65 kB[^\n]*$"):
        header.parse_cell("", text, header.HeaderContext())
    assert time.thread_time() - begun_s < 1.0  # most of it is to find where the header ends


def test_a_settings_file_that_is_too_large_or_no_file_is_a_fault(tmp_path):
    (tmp_path / "large.yml").write_text("# x\n" * 30_000)
    context = header.HeaderContext(cwd=tmp_path)
    for name, told in (("large.yml", "a header of"), ("/dev/zero", "not a regular file"), ("~nobody_here/x", "read")):
        with pytest.raises(HeaderError, match=told):
            header.parse_cell(f"-f {name}", "", context)
