"""Ignore files: the same paths stay here as git would leave out."""

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jupyter_autotrain.capture.files.ignore import IgnoreRules

PATTERNS = (
    "a", "*.t", "/a", "a/", "a/b", "**/b", "a/**", "a/**/c", "!a/b", "!*.t", "?", "[ab]", "[!a]", "#a", "\\#x", "b ",
    "*/c", "!c", "a*", "**", "x.t/", "/**/c", "a**b", "*", "!a", "!a/", "!b/", "!/a/b/", "/*", "!/a", "[^b]", "b/c",
    "/", "!", "**/", "*/", "a/*", "!a/*/", "a\\", "[z-a]", "[", "a[!x]b", "\\a", "  b", "a/**/", "**/a/**", "x.?",
)  # fmt: skip
NAMES = st.sampled_from(["a", "b", "c", "x.t", "ab", "#x", "axb"])
PATHS = st.lists(st.lists(NAMES, min_size=1, max_size=4).map("/".join), min_size=1, max_size=14)
LINES = st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=4)
FOLDERS = st.sampled_from(["", "a/", "b/", "a/b/", "c/"])


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    if shutil.which("git") is None:
        pytest.skip("git is the reference, and it is not installed")
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", root], check=True)
    return root


@settings(max_examples=60)
@given(PATHS, st.dictionaries(FOLDERS, LINES, min_size=1, max_size=3))
def test_the_rules_agree_with_git_on_any_tree(repository, paths, ignore_files):
    lay_out(repository, paths, ignore_files)
    files = sorted(path for path in paths if (repository / path).is_file())
    rules = IgnoreRules(repository)
    assert {path for path in files if rules(path)} == ignored_by_git(repository, files)


def lay_out(root, paths, ignore_files):
    """Write the files and the ignore files, in place of those of the last example."""
    for old in root.iterdir():
        if old.is_dir() and old.name != ".git":
            shutil.rmtree(old)
        elif old.is_file():
            old.unlink()
    for folder, lines in ignore_files.items():
        (root / folder).mkdir(parents=True, exist_ok=True)
        for name in (".gitignore", ".autotrainignore"):
            (root / folder / name).write_text("\n".join(lines) + "\n")
    for path in paths:
        if can_be_file(root, path):
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("")


def can_be_file(root, path):
    return not (root / path).exists() and not any((root / path).parents[n].is_file() for n in range(path.count("/")))


def ignored_by_git(root, files):
    command = ["git", "check-ignore", "--no-index", "--stdin", "-z"]
    done = subprocess.run(command, check=False, cwd=root, input="\0".join(files), capture_output=True, text=True)
    return set(done.stdout.split("\0")) - {""}


@pytest.mark.parametrize(
    ("lines", "stays", "travels"),
    [
        (["*", "!data/", "!data/**"], ["a.txt", "deep/a.txt"], ["data/a.txt", "data/deep/a.txt"]),
        (["data", "!data/a.txt"], ["data/a.txt", "x/data/b"], ["a.txt"]),
        (["a/**", "!a/b"], ["a/c"], ["a/b", "b/a"]),
    ],
)
def test_a_file_comes_back_only_where_its_folder_does(tmp_path, lines, stays, travels):
    rules = IgnoreRules(tmp_path, lines)
    assert [path for path in stays + travels if rules(path)] == stays


def test_an_ignore_file_in_a_folder_counts_from_there(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / ".autotrainignore").write_text("*.log\n")
    (tmp_path / "data" / ".autotrainignore").write_text("/raw\n!keep.log\n")
    rules = IgnoreRules(tmp_path, ["left.log"])
    assert [path for path in ("data/raw", "data/x/raw", "raw", "keep.log", "data/keep.log") if rules(path)] == [
        "data/raw",
        "keep.log",
    ]
    assert rules("data/left.log")
    assert rules("node_modules", is_folder=True)
    assert not rules("node_modules")
