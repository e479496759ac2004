"""The fate of IPython's own syntax in a trial: left out with a note, written as Python, or refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from jupyter_autotrain.capture.syntax.magics import HELP, SHELL, Magic, read

_SHOWS = frozenset({
    "aimport", "alias", "autoreload", "cat", "colors", "config", "debug", "dhist", "gui", "head", "hist", "history",
    "less", "ll", "load_ext", "ls", "lsmagic", "magic", "matplotlib", "memit", "more", "page", "pdb", "pdef", "pdoc",
    "pfile", "pinfo", "pinfo2", "pprint", "psource", "pwd", "pycat", "quickref", "reload_ext", "tail", "tensorboard",
    "watermark", "who", "who_ls", "whos", "xmode",
})  # fmt: skip
_INSTALLERS = frozenset({"apt", "apt-get", "brew", "conda", "mamba", "micromamba", "pip", "pip3", "poetry", "uv"})
_READERS = frozenset({
    "cat", "cd", "date", "df", "du", "echo", "env", "export", "file", "free", "grep", "head", "hostname", "id", "ls",
    "lscpu", "lsblk", "md5sum", "nproc", "nvcc", "nvidia-smi", "printenv", "ps", "pwd", "rocm-smi", "sort", "stat",
    "sysctl", "tail", "tree", "type", "uname", "uniq", "uptime", "wc", "whereis", "which", "whoami",
})  # fmt: skip
_PYTHONS = ("python", "{sys.executable}", "$sys.executable")
_PLAIN = "A trial runs plain Python."
_ABOVE = "Move the line to a cell above, or write it as Python."
_NOTES: Mapping[str, str] = {
    **dict.fromkeys(_SHOWS, "means nothing in a trial"),
    **dict.fromkeys(_INSTALLERS, "trials use what is installed already"),
    "matplotlib": "means nothing in a trial; plt.show() and display(...) keep their pictures there",
    "timeit": "it measures, and binds no names",
}
_REFUSED_LINES: Mapping[str, tuple[str, str]] = {
    HELP: ("Help is shown here only; it has no effect in a trial.", "Remove the line."),
    "cd": (
        "A trial works in a folder of its own, which has the files that travel with the cell.",
        "Name files by their place beside the notebook, and remove the line.",
    ),
    "pylab": (_PLAIN, "Write `import numpy as np` and `import matplotlib.pyplot as plt`."),
    **dict.fromkeys(("lprun", "mprun", "prun"), (_PLAIN, "Write the statement alone, or use cProfile.run(...).")),
}
_REFUSED_CELLS: Mapping[str, tuple[str, str]] = {
    "capture": ("What a trial prints goes to its log: `%autotrain logs`.", "Remove the line."),
    "prun": (_PLAIN, "Remove the line, or use cProfile.Profile() around the code."),
    **dict.fromkeys(
        ("time", "timeit"),
        (
            "A trial runs plain Python, once; %%timeit keeps none of the names that its lines bind.",
            "Remove the line; a trial tells how long it ran.",
        ),
    ),
    **dict.fromkeys(
        ("file", "writefile"),
        (
            "A trial runs plain Python; files beside the notebook travel with it.",
            "Write the file in a cell of its own above, without %%autotrain.",
        ),
    ),
    **dict.fromkeys(
        ("bash", "cmd", "perl", "ruby", "script", "sh", SHELL),
        (
            "A trial runs plain Python; these lines are for another program.",
            "Run them in a cell of their own above, or use subprocess.run(...) in the cell.",
        ),
    ),
    **dict.fromkeys(
        ("html", "javascript", "js", "latex", "markdown", "svg"), (_PLAIN, "Give these lines a cell of their own.")
    ),
}


@dataclass(frozen=True, slots=True)
class MagicTranslation:
    """The fate of a line of IPython's syntax in a trial.

    Attributes:
        code: The Python that takes its place.
        note: The message for the user.
        expected: For a line that is refused: what is expected instead; "" for one that is not.
        action: And what to do next.
    """

    code: str = "pass"
    note: str = ""
    expected: str = ""
    action: str = ""


def judge(magic: Magic) -> MagicTranslation:
    """Return the fate of a line in a trial."""
    if magic.is_cell:
        return _cell(magic)
    if magic.name == "time":
        return _timed(magic)
    if magic.target:
        return _assigned(magic)
    if magic.name in _NOTES:
        return MagicTranslation(note=_NOTES[magic.name])
    return _effect(magic)


def _effect(magic: Magic) -> MagicTranslation:
    if magic.name == SHELL:
        return _shell(magic.argument)
    if magic.name in {"env", "set_env"}:
        return _environment(magic.argument)
    if magic.name == "run":
        module = magic.argument.partition(" ")[0].removesuffix(".py").replace("/", ".") or "NAME"
        expected = "A trial runs plain Python, and modules beside the notebook travel with it."
        return MagicTranslation(expected=expected, action=f"Write `from {module} import *`, or run it in a cell above.")
    expected, action = _REFUSED_LINES.get(magic.name, (_PLAIN, _ABOVE))
    return MagicTranslation(expected=expected, action=action)


def _timed(magic: Magic) -> MagicTranslation:
    """Return the translation of `%time STATEMENT`, which runs the statement once and binds its names."""
    statement = magic.argument.removeprefix("--no-raise-error").strip()
    note = "the statement runs, without being timed"
    if statement.startswith(("%", "!")):
        return judge(read(statement, magic.index))
    if not statement:
        return MagicTranslation(note="it measures, and binds no names")
    return MagicTranslation(f"{magic.target} = {statement}" if magic.target else statement, note)


def _assigned(magic: Magic) -> MagicTranslation:
    if magic.name == SHELL:
        run = f"subprocess.run({magic.argument!r}, shell=True, capture_output=True, text=True).stdout.splitlines()"
        action = f"Write `{magic.target} = {run}`, or run it in a cell above."
        return MagicTranslation(
            expected="A trial runs plain Python; only IPython assigns what a program prints.", action=action
        )
    if magic.name == "env" and magic.argument.isidentifier():
        return MagicTranslation(expected=_PLAIN, action=f'Write `{magic.target} = os.environ["{magic.argument}"]`.')
    return MagicTranslation(expected=_PLAIN, action="Run the line in a cell above: its result travels as data.")


def _shell(command: str) -> MagicTranslation:
    parts = [part.split() for part in re.split(r"&&|\|\||[;|&\n]", command) if part.strip()]
    if all(map(_installs, parts)):
        return MagicTranslation(note="trials use what is installed already")
    if ">" not in command and all(_installs(words) or words[0] in _READERS for words in parts):
        return MagicTranslation(note="it only shows something here")
    return MagicTranslation(
        expected="A trial runs plain Python; what this program does to files here is not done there.",
        action="Run it in a cell of its own above, and name the files under `ship:`, or use subprocess.run(...).",
    )


def _installs(words: list[str]) -> bool:
    words = words[1:] if words[0] == "sudo" else words
    by_python = words[0].startswith(_PYTHONS) and words[1:2] == ["-m"]
    tool = words[2] if by_python and len(words) > 2 else words[0]
    return tool in _INSTALLERS


def _environment(argument: str) -> MagicTranslation:
    name, _, value = (part.strip() for part in argument.partition("=" if "=" in argument else " "))
    if not value:
        return MagicTranslation(note="it only shows something here")
    if not name.isidentifier() or set("${}") & set(value):
        return MagicTranslation(expected=_PLAIN, action='Write `os.environ["NAME"] = value`.')
    code = f"import os as __autotrain_os; __autotrain_os.environ[{name!r}] = {value!r}"
    return MagicTranslation(code, "it is set by os.environ")


def _cell(magic: Magic) -> MagicTranslation:
    if magic.name == "time" and not magic.argument:
        return MagicTranslation(note="the lines below run, without being timed")
    remove = f"Remove %%{magic.name}, or give its lines a cell of their own."
    expected, action = _REFUSED_CELLS.get(magic.name, (_PLAIN, remove))
    return MagicTranslation(expected=expected, action=action)
