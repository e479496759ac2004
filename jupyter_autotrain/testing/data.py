"""The backend contract, fourth part: the data of a trial."""

from __future__ import annotations

from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client import data_files
from jupyter_autotrain.core.backend import Backend
from jupyter_autotrain.core.data import DataKind, DataSource
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import AutotrainError
from jupyter_autotrain.testing.harness import BackendHarness


def data_of(home: Home, folder: Path, *, experiment_id: str = "e1", **paths: str) -> tuple[DataSource, ...]:
    """Entries of `data:` that are sent, read and noted as a submission does.

    Args:
        home: The home.
        folder: What the paths are relative to, as to a notebook.
        experiment_id: The experiment.
        **paths: The path of each entry.
    """
    sources = tuple(DataSource(name, DataKind.COPY, local_path=path) for name, path in paths.items())
    spec, manifests = data_files.read(home, ExperimentSpec("e", Bundle(), data=sources), folder)
    for name, manifest in manifests.items():
        data_files.write(manifest, home.data_manifest(experiment_id, name))
    return spec.data


class DataContract(BackendHarness):
    """The contract of every backend about `data:`."""

    def test_a_file_that_is_sent_lies_where_data_says_and_where_the_code_opens_it(
        self, backend: Backend, home: Home, tmp_path: Path
    ) -> None:
        (tmp_path / "train.csv").write_text("1,2\n")
        code = "import pathlib\nbeside = pathlib.Path('train.csv')\n"
        code += "print(data.train.name, repr(data.train.read_text()), repr(beside.read_text()))"
        ref, status = self.run(backend, home, code, data=data_of(home, tmp_path, train="train.csv"))
        assert status.state is TrialState.SUCCEEDED, status.reason
        assert self.read(backend, ref, wire.STDOUT) == b"train.csv '1,2\\n' '1,2\\n'\n"

    def test_a_folder_that_is_sent_keeps_its_name_and_all_that_is_in_it(
        self, backend: Backend, home: Home, tmp_path: Path
    ) -> None:
        for name in ("images/a/1.txt", "images/2.txt"):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(name)
        (tmp_path / "images" / "empty").mkdir()
        code = "print(data['images'].name, sorted(str(p.relative_to(data.images)) for p in data.images.rglob('*')))"
        ref, _ = self.run(backend, home, code, data=data_of(home, tmp_path, images="images"))
        assert self.read(backend, ref, wire.STDOUT) == b"images ['2.txt', 'a', 'a/1.txt', 'empty']\n"

    def test_a_path_that_is_not_there_is_named_with_its_node(self, backend: Backend) -> None:
        found = backend.missing_paths(["/tmp", "/no/such/place", "~"])  # noqa: S108 - every machine has it
        assert {path for _, path in found} == {"/no/such/place"}
        assert all(node for node, _ in found)

    def test_a_trial_whose_path_is_not_there_fails_with_that_reason(self, backend: Backend, home: Home) -> None:
        images = DataSource("images", DataKind.PATH, path="/no/such/place")
        _, status = self.run(backend, home, "print(data.images)", data=(images,))
        assert status.state is TrialState.FAILED
        assert "data.images: /no/such/place is not there on" in status.reason

    def test_a_file_that_was_changed_after_the_submission_is_refused(
        self, backend: Backend, home: Home, tmp_path: Path
    ) -> None:
        path = tmp_path / "train.csv"
        path.write_text("1,2\n")
        data = data_of(home, tmp_path, train="train.csv")
        path.write_text("3,4,5\n")
        with pytest.raises(AutotrainError, match=r"data\.train: .*train\.csv was changed or removed"):
            self.start(backend, home, "print(1)", data=data)
        path.unlink()
        with pytest.raises(AutotrainError, match=r"data\.train: .*train\.csv was changed or removed"):
            self.start(backend, home, "print(1)", data=data)
