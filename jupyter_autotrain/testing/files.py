"""The backend contract, second part: the files and the data of a trial."""

from __future__ import annotations

import pickle
import stat
from pathlib import Path

import pytest

from jupyter_autotrain.agent import wire
from jupyter_autotrain.agent.states import TrialState
from jupyter_autotrain.client import data_files
from jupyter_autotrain.core.backend import Backend, BackendContext
from jupyter_autotrain.core.data import DataKind, DataSource
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec, Placement
from jupyter_autotrain.errors import AutotrainError, BackendError
from jupyter_autotrain.testing.bundles import trial_of, wait_until, write_bundle
from jupyter_autotrain.testing.harness import BackendHarness


class FilesContract(BackendHarness):
    """The contract of every backend about the files of a trial."""

    def test_put_and_fetch_give_the_same_bytes(self, backend: Backend, home: Home, tmp_path: Path) -> None:
        ref, _ = self.run(backend, home, "")
        backend.put(ref, "outputs/deep/blob", b"\0\xff" * 1000)
        backend.fetch(ref, "outputs/deep/blob", str(tmp_path / "blob"))
        assert (tmp_path / "blob").read_bytes() == b"\0\xff" * 1000

    def test_a_folder_is_fetched_whole(self, backend: Backend, home: Home, tmp_path: Path) -> None:
        code = "from pathlib import Path\nPath('../outputs/a').mkdir()\nPath('../outputs/a/b.txt').write_text('hi')"
        ref, _ = self.run(backend, home, code)
        backend.fetch(ref, "outputs", str(tmp_path / "all"))
        assert (tmp_path / "all" / "a" / "b.txt").read_text() == "hi"

    def test_the_sizes_of_all_files_of_a_folder_are_told(self, backend: Backend, home: Home) -> None:
        code = "from pathlib import Path\nPath('deep').mkdir()\nPath('deep/b.txt').write_text('hi')"
        ref, _ = self.run(backend, home, code)
        assert backend.sizes(ref, wire.WORK) == {"deep/b.txt": 2}
        assert backend.sizes(ref, wire.OUTPUTS) == {}
        with pytest.raises(BackendError):
            backend.sizes(ref, "no-such-folder")

    def test_a_folder_that_the_trial_left_empty_is_no_error(self, backend: Backend, home: Home, tmp_path: Path) -> None:
        ref, _ = self.run(backend, home, "")
        for folder in wire.FOLDERS:
            backend.fetch(ref, folder, str(tmp_path / folder))
            assert not list(tmp_path.joinpath(folder).glob("*"))

    def test_a_path_outside_the_trial_is_refused(self, backend: Backend, home: Home) -> None:
        ref, _ = self.run(backend, home, "")
        with pytest.raises(BackendError):
            backend.put(ref, "../../escape", b"")

    def test_fetching_what_is_not_there_is_an_error_in_plain_words(
        self, backend: Backend, home: Home, tmp_path: Path
    ) -> None:
        ref, _ = self.run(backend, home, "")
        with pytest.raises(BackendError, match=r"nothing\.pkl"):
            backend.fetch(ref, "outputs/nothing.pkl", str(tmp_path / "x"))

    def test_returned_names_come_back(self, backend: Backend, home: Home, tmp_path: Path) -> None:
        ref, _ = self.run(backend, home, "model = {'w': [1, 2]}", returns=("model",))
        saved = self.fetched(backend, ref, "outputs/model.pkl", tmp_path / "model.pkl")
        assert pickle.loads(saved) == {"w": [1, 2]}  # noqa: S301 - written by this test

    def test_an_ended_trial_leaves_only_what_it_made(self, backend: Backend, home: Home, tmp_path: Path) -> None:
        code = "import helper\nprint('out')\nreport(a=1)\nimport pathlib\npathlib.Path('mine.txt').write_text('kept')"
        write_bundle(home.bundle("e1"), code, files={"helper.py": "", "d/x.txt": "text"})
        ref, _ = self.run(backend, home, "")
        left = self.left_by(backend, ref, tmp_path / "left")
        left.pop(wire.USAGE, None)  # only of a trial that a slow machine took seconds for
        assert sorted(left) == ["metrics", "status.json", "stdout", "work/mine.txt"]
        assert left["work/mine.txt"] == b"kept"

    def test_everything_in_the_trial_directory_is_private(self, backend: Backend, home: Home) -> None:
        if not backend.capabilities.shares_home:
            pytest.skip("the trial directory lies elsewhere")
        trial = trial_of(home, "report(a=1)\ncheckpoint.save(1)\nx = 1", returns=("x",))
        self.finish(backend, backend.submit(trial, Placement(), {}))
        directory = BackendContext(home).directory(trial)
        wait_until(lambda: not (directory / wire.LOCK_FILE).exists(), "the supervisor's end")
        modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (directory, *directory.rglob("*"))}
        assert {path for path, mode in modes.items() if mode & 0o077} == set()


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
