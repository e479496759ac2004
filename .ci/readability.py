"""Prints how easily each page of the site reads: Flesch's reading ease of its sentences, and their mean length.

Flesch: 206.835 - 1.015 words per sentence - 84.6 syllables per word. 60 and more is plain English, below 30 is an
academic paper. Code, tables and headings are left out, a name in code counts as one word of two syllables.
"""

from __future__ import annotations

import re
import statistics
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")))
NOT_PROSE = re.compile(  # code; rows, headings, pictures and directives; tags; badges
    r"^ *```.*?^ *```|^ *(?:[|#<!=:]|options:).*?$|<[^>\n]+>|\[!\[.*?\)\]\(.*?\)", re.MULTILINE | re.DOTALL
)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
CODE = re.compile(r"`[^`]+`")
END = re.compile(r"[.!?]+(?=\s|$)|\n\s*\n|\n\s*(?:[-*]|\d+\.) ")
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
VOWELS = re.compile(r"[aeiouy]+")


class Readability(NamedTuple):
    """Words of a page, words per sentence, and Flesch's reading ease."""

    words: int
    sentence: float
    ease: float


def main() -> None:
    """Print a row for each page, the hardest first, and the median."""
    found = pages()
    print("| page | words | words per sentence | reading ease |\n|---|---|---|---|")
    for name, page in sorted(found.items(), key=lambda pair: pair[1].ease):
        print(f"| {name} | {page.words} | {page.sentence:.0f} | {page.ease:.0f} |")
    print(f"\nmedian of {len(found)} pages: {statistics.median(page.ease for page in found.values()):.0f}")


def pages() -> dict[str, Readability]:
    """Return the figures of each page that has sentences: the glossary is a table."""
    found = {str(path.relative_to(ROOT)): readability(path.read_text(encoding="utf-8")) for path in PAGES}
    return {name: page for name, page in found.items() if page is not None}


def readability(text: str) -> Readability | None:
    """Return the figures of a page of Markdown; None when it has no sentence."""
    prose = CODE.sub("token", LINK.sub(r"\1", NOT_PROSE.sub("\n\n", text)))
    sentences = [words for part in END.split(prose) if (words := WORD.findall(part))]
    if not sentences:
        return None
    words = [word for sentence in sentences for word in sentence]
    per_sentence = len(words) / len(sentences)
    per_word = sum(map(syllables, words)) / len(words)
    return Readability(len(words), per_sentence, 206.835 - 1.015 * per_sentence - 84.6 * per_word)


def syllables(word: str) -> int:
    """Return how many syllables a word has: its groups of vowels, without a silent e at the end."""
    word = word.lower()
    silent = re.search(r"[^aeiouyl]e$|[^aeiouytd]ed$|[^aeiouyscxzh]es$", word) is not None
    return max(1, len(VOWELS.findall(word)) - silent)


if __name__ == "__main__":
    main()
