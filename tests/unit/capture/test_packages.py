"""Tests that the distributions that a cell needs are known, wherever they are imported."""

import importlib
import sys
import textwrap
import types
from pathlib import Path

import pytest

from jupyter_autotrain import capture
from jupyter_autotrain.agent.environments.python_environment import PythonPackage


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Yield a folder of installed packages that this test alone sees."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))

    def install(name, version, files):
        for file in files:
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("def f():\n    return 1\n\n\nclass Thing:\n    pass\n")
        info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))

    yield install
    for name in [name for name, module in sys.modules.items() if str(folder) in str(getattr(module, "__file__", ""))]:
        del sys.modules[name]


def packages(code, cwd, namespace=None):
    return capture.capture(textwrap.dedent(code), namespace or {}, cwd=Path(cwd)).packages


def test_imports_are_named_by_their_distributions_also_inside_functions(site, tmp_path):
    site("learn-kit", "1.4", ["lkit/__init__.py"])
    site("lazy", "0.2+cpu", ["lazy.py"])
    site("unused", "9", ["unused.py"])
    code = """
        import os, lkit.models
        def later():
            from lazy import f
            import not_installed_anywhere
        later
    """
    assert packages(code, tmp_path) == (
        PythonPackage("lazy", "0.2+cpu", ("lazy",)),
        PythonPackage("learn-kit", "1.4", ("lkit",)),
    )


def test_parts_of_a_namespace_package_are_told_apart(site, tmp_path):
    site("acme-storage", "1", ["acme/storage/__init__.py"])
    site("acme-mail", "2", ["acme/mail/__init__.py"])
    assert [one.name for one in packages("import acme.storage", tmp_path)] == ["acme-storage"]


def test_what_a_shipped_module_imports_counts_and_the_module_itself_does_not(site, tmp_path):
    site("lazy", "0.2", ["lazy.py"])
    beside = tmp_path / "notebook"
    beside.mkdir()
    (beside / "helpers_of_mine.py").write_text("def g():\n    import lazy\n    return lazy\n")
    assert [one.name for one in packages("import helpers_of_mine", beside)] == ["lazy"]


def test_a_package_that_only_pickled_data_refers_to_is_marked(site, tmp_path):
    site("things", "3.1", ["things.py"])
    import things

    (found,) = packages("thing", tmp_path, {"thing": things.Thing()})
    assert (found.name, found.is_in_data) == ("things", True)


def test_an_installation_while_the_notebook_runs_is_seen(site, tmp_path):
    assert packages("import lazy", tmp_path) == ()
    site("lazy", "0.2", ["lazy.py"])
    assert [one.version for one in packages("import lazy", tmp_path)] == ["0.2"]


def test_the_bundle_says_what_it_needs(site, tmp_path):
    site("lazy", "0.2", ["lazy.py"])
    captured = capture.capture("import lazy", {}, cwd=tmp_path)
    bundle = capture.write_bundle(captured, tmp_path / "bundle")
    assert capture.read_bundle(tmp_path / "bundle") == bundle
    assert bundle.python_packages == (PythonPackage("lazy", "0.2", ("lazy",)),)
    assert bundle.python_version == ".".join(map(str, sys.version_info[:3]))


def test_a_package_that_puts_another_module_in_its_place_later_is_imported_as_before(site, tmp_path, monkeypatch):
    site("learn-kit", "1.4", ["lkit/__init__.py"])
    module = importlib.import_module("lkit")
    other = types.ModuleType("lkit")
    other.__file__ = module.__file__
    monkeypatch.setitem(sys.modules, "lkit", other)
    assert "import lkit" in capture.capture("lkit.f()", {"lkit": module}, cwd=tmp_path).script
