"""Cells, commands and settings of the site, the README and the notebooks are read; what needs no other place is run."""

from __future__ import annotations

import ast
import json
import re
import runpy
import shlex
import textwrap
import tomllib
from pathlib import Path

import jsonschema
import pytest
from IPython.core.inputtransformer2 import TransformerManager
from jsonschema.protocols import Validator
from ruamel.yaml import YAML

from jupyter_autotrain import backends, header
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.header.backend_models import profiles_schema
from jupyter_autotrain.header.schema import Header
from jupyter_autotrain.verbs.grammar import grammar

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
NOTEBOOKS = sorted((ROOT / "example_notebooks").glob("*.ipynb"))
GENERATED = runpy.run_path(str(ROOT / ".ci" / "reference_pages.py"))["PAGES"]
RUN = ("guides/results",)
RUN_LONG = (
    "start/first-cell",  # by default the notebook 01_quickstart goes the same way
    *("start/what-happens", "places/local", "moving/nni", "moving/ray-tune", "moving/submitit", "moving/accelerate"),
    *("guides/search", "guides/data", "guides/capture", "guides/checkpoints", "guides/multi-node"),
    *("guides/planning", "guides/running-a-split", "guides/sessions", "guides/federated", "guides/scripts"),
)
SERVICES = """\
pai: {type: openpai, address: "https://pai.org", user: ada, image: py, storage: {local_path: /mnt, mount_path: /mnt}}
azure: {type: aml, subscription: one, resource_group: group, workspace: vision, compute: gpus, image: python}
dlts: {type: dlts, address: "https://dlts.org", team: team, image: py, storage: {local_path: /mnt, mount_path: /mnt}}
dlc: {type: dlc, region: cn-hangzhou, workspace: "1", image: py, storage: {local_path: /mnt, mount_path: /mnt}}
"""
NNI_FILE = """\
experimentName: imported
searchSpace: {lr: {_type: choice, _value: [0.1, 0.2]}}
trialCommand: python train.py
trialConcurrency: 1
maxTrialNumber: 2
tuner: {name: TPE, classArgs: {optimize_mode: maximize}}
trainingService: {platform: local}
"""


def blocks(path: Path, *languages: str) -> list[str]:
    """Return the fenced blocks of a page in some languages; what a page includes stands in its own file."""
    found = FENCE.findall(path.read_text(encoding="utf-8"))
    return [textwrap.dedent(text) for _, language, text in found if language in languages and "--8<--" not in text]


def cells(path: Path) -> list[str]:
    """Return the cells of a page or a notebook but those that are to fail."""
    if path.suffix != ".ipynb":
        return blocks(path, "python")
    found = [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    return ["".join(cell["source"]) for cell in found if "raises-exception" not in cell["metadata"].get("tags", ())]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def commands(path: Path) -> list[list[str]]:
    """Return the verbs that a page calls, in notebooks and in shells, by their words."""
    text = "\n".join([*cells(path), *blocks(path, "shell")])
    lines = re.findall(r"^(?:%autotrain|jupyter autotrain) (.*)$", text, re.MULTILINE)
    return [shlex.split(line) for line in lines]


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> header.HeaderContext:
    """Return a folder with the places that the pages name."""
    config = tmp_path_factory.mktemp("config")
    profiles = "lab: {type: ssh, hosts: [gpu1]}\ncluster: {type: slurm}\npods: {type: kubernetes}\n"
    profiles += "hospital-a: {type: ssh, hosts: [a]}\nhospital-b: {type: ssh, hosts: [b]}\n"
    (config / "pool").mkdir()
    (config / "numbers.txt").write_text("1\n")
    (config / "backends.yaml").write_text(profiles + SERVICES)
    environ = {"JUPYTER_CONFIG_DIR": str(config)}
    return header.HeaderContext(config, environ, backends.type_names(), backends.header_schema())


@pytest.mark.parametrize("path", [*PAGES, *NOTEBOOKS], ids=name_of)
def test_the_cells_of_a_page_or_notebook_have_headers_without_faults_and_are_python(
    path: Path, context: header.HeaderContext
) -> None:
    for block in cells(path):
        if not block.startswith("%%autotrain"):
            ast.parse(TransformerManager().transform_cell(block))
        elif "--session" not in block.partition("\n")[0]:
            first, _, body = block.partition("\n")
            parsed = header.parse_cell(first.removeprefix("%%autotrain"), body, context)
            ast.parse(parsed.code)


@pytest.mark.parametrize("path", [path for path in [*PAGES, *NOTEBOOKS] if commands(path)], ids=name_of)
def test_the_commands_of_a_page_or_notebook_are_in_the_grammar(path: Path) -> None:
    verbs = grammar()
    for name, *words in commands(path):
        try:
            verbs[name].parse_intermixed_args(words)
        except AutotrainError as error:
            pytest.fail(f"{name} {words}: {error}")


@pytest.fixture(scope="module")
def profiles() -> Validator:
    """Return what checks profiles of all types."""
    schema = {"$defs": {}, **profiles_schema(tuple(backends.options_models().items()))}
    checked = jsonschema.validators.validator_for(schema)
    checked.check_schema(schema)
    return checked(schema)


@pytest.mark.parametrize("path", [path for path in PAGES if blocks(path, "yaml", "toml")], ids=name_of)
def test_the_settings_of_a_page_are_valid(path: Path, context: header.HeaderContext, profiles: Validator) -> None:
    for text in blocks(path, "toml"):
        assert tomllib.loads(text)
    for text in blocks(path, "yaml"):
        settings = YAML(typ="safe").load(text)
        profiles.validate(settings.pop("backends", {}))
        header.parse_cell("", f"{json.dumps(settings)}\n---\n", context)


def test_the_words_that_troubleshooting_quotes_are_those_of_the_errors() -> None:
    page = (ROOT / "docs" / "help" / "troubleshooting.md").read_text(encoding="utf-8")
    quoted = re.findall(r"^\| `([^`]+)` \|", page, re.MULTILINE)
    files = [*(ROOT / "jupyter_autotrain").rglob("*.py"), ROOT / "hatch_build.py"]
    source = "\n".join(file.read_text(encoding="utf-8") for file in files)
    assert len(quoted) > 15
    assert [words for words in quoted if words not in source] == []


@pytest.mark.parametrize("path", PAGES, ids=name_of)
def test_the_links_of_a_page_lead_to_pages(path: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)", FENCE.sub("", path.read_text(encoding="utf-8")))
    assert [one for one in targets if not (path.parent / one).exists() and Path(one).name not in GENERATED] == []


def test_generated_pages_have_every_key_and_verb_and_the_anchors_that_pages_link() -> None:
    pages = {name: make() for name, make in GENERATED.items()}
    assert [key for key in Header.model_fields if f"{{ #{key} }}" not in pages["header.md"]] == []
    assert [verb for verb in grammar() if f"## {verb}\n" not in pages["verbs.md"]] == ["status", "attach"]
    assert "CREATE TABLE experiments" in pages["formats.md"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in PAGES)
    types = re.findall(r"options\.md#type-(\w+)", text)
    assert {name for name in types if f"## `type: {name}`" not in pages["options.md"]} == set()


def test_every_page_is_in_the_navigation() -> None:
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT / "docs") for path in PAGES if (ROOT / "docs") in path.parents]
    assert [str(page) for page in pages if f"- {page}\n" not in listed] == []


def test_each_page_reads_easily() -> None:
    pages = runpy.run_path(str(ROOT / ".ci" / "readability.py"))["pages"]()
    assert len(pages) > 50
    hard = {name: page for name, page in pages.items() if page.ease < 60 or page.sentence > 20}
    assert hard == {}, "write shorter sentences and plainer words"


def test_each_type_of_place_has_a_guide() -> None:
    guides = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs" / "places").glob("*.md")))
    unexplained = [name for name in backends.type_names() if f"options.md#type-{name})" not in guides]
    assert unexplained == ["debug"], "write docs/places/TYPE.md with a link to reference/options.md#type-TYPE"


def test_the_extras_that_are_explained_exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", page, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"\w+", row)}
    assert "ssh" in named
    assert named <= set(project["optional-dependencies"])


def test_every_page_that_is_run_exists_and_has_cells() -> None:
    assert all(blocks(ROOT / "docs" / f"{page}.md", "python") for page in (*RUN, *RUN_LONG))


def run_page(notebook, page: str) -> None:
    """Run all cells of a page from top to bottom; each experiment is waited for."""
    Path("numbers.txt").write_text("1\n2\n3\n")
    Path("config.yml").write_text(NNI_FILE)
    Path("train.py").write_text("import nni\nnni.report_final_result(nni.get_next_parameter()['lr'])\n")
    for block in blocks(ROOT / "docs" / f"{page}.md", "python"):
        first, newline, body = block.partition("\n")
        if first.startswith("%%autotrain") and not re.search(r"--(check|session)", first):
            first += " --wait"
        result, shown = notebook.run(first + newline + body)
        assert result.success, f"{block}\n{shown}"
        value = notebook.shell.user_ns.get("_")
        if first.endswith("--wait"):
            assert value.state == "SUCCEEDED", f"{block}\n{shown}"


@pytest.mark.parametrize("page", RUN)
def test_a_page_runs_from_top_to_bottom(notebook, page: str) -> None:
    run_page(notebook, page)


@pytest.mark.long
@pytest.mark.parametrize("page", RUN_LONG)
def test_all_pages_that_need_no_other_place_run_from_top_to_bottom(notebook, page: str) -> None:
    run_page(notebook, page)


def tuner_suite() -> type:
    """Return the suite that the page about tuners ends with, of the tuner that it shows."""
    names: dict[str, type] = {}
    page = ROOT / "docs" / "extending" / "tuner.md"
    exec("\n".join(blocks(page, "python")), names)
    return names["TestNearTheBest"]


TestTheTunerOfThePage = tuner_suite()
