"""Text from trials, files and names: escape sequences are removed before it is printed."""

from __future__ import annotations

import re

# Whole sequences go, so that no rest such as `[31m` stays: CSI, then OSC and the other strings, then short escapes.
_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c\n]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]"
)
_HALF = re.compile("[\ud800-\udfff]")  # of a pair of UTF-16, or a byte of a file's name that is no UTF-8
# C0 and C1 controls but tab and newline, and the marks that turn the direction of the text around them.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Return the text without escape sequences and control characters, as UTF-8 can hold it; newlines and tabs stay.

    Where carriage returns overwrite a line, as in progress bars, its last version is kept. Linear in the text.
    """
    if "\r" in text:
        text = "\n".join(map(_last_written, text.split("\n")))
    return _HALF.sub("\ufffd", _CONTROL.sub("", _SEQUENCE.sub("", text)))


def _last_written(line: str) -> str:
    written = list(filter(None, line.split("\r")))
    return written[-1] if written else ""
