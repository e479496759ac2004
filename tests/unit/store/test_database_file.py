"""The file itself: migrations, journals, and failures told in three clauses."""

import os
import sqlite3
from pathlib import Path

import pytest

from jupyter_autotrain.agent.system import linux, portable
from jupyter_autotrain.core.home import Home
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec
from jupyter_autotrain.errors import OutdatedError, StoreError
from jupyter_autotrain.store import Store, database, database_file, schema
from jupyter_autotrain.store.failures import explained
from jupyter_autotrain.store.repair import repair

MOUNTS = """\
22 1 0:21 / / rw,relatime - ext4 /dev/sda1 rw
31 22 0:27 / /home rw,relatime shared:5 - nfs4 server:/home rw
44 31 0:31 / /home/ann/my\\040disk rw - ext4 /dev/sdb1 rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [("/srv/store.sqlite", "ext4"), ("/home/ann/store.sqlite", "nfs4"), ("/home/ann/my disk/store.sqlite", "ext4")],
)
def test_the_file_system_of_a_path_is_that_of_its_deepest_mount(path, kind):
    assert database_file.filesystem_of(Path(path), linux.mount_points(MOUNTS)) == kind
    assert database_file.filesystem_of(Path(path), []) == ""


def test_psutil_tells_the_same_file_systems_as_linux(tmp_path):
    found = database_file.filesystem_of(tmp_path / "store.sqlite", portable.filesystems())
    assert found == database_file.filesystem_of(tmp_path / "store.sqlite", linux.filesystems()) != ""


def test_a_network_disk_gets_a_rollback_journal_and_says_so(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "filesystem_of", lambda path: "nfs4")
    with Store.open(Home(tmp_path / "home")) as store:
        assert store.journal == "delete"
        store.add_experiment("a1", ExperimentSpec("a", Bundle()), 1.0)
        assert not list((tmp_path / "home").glob("*-wal"))
        with Store.open(Home(tmp_path / "home")) as other:
            assert other.find("a").id == "a1"


def test_an_older_file_is_brought_forward_and_keeps_its_rows(tmp_path, monkeypatch):
    home = Home(tmp_path / "home")
    with Store.open(home) as store:
        store.add_experiment("a1", ExperimentSpec("a", Bundle()), 1.0)
    newer = (*schema.MIGRATIONS, "ALTER TABLE experiments ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'")
    connection = sqlite3.connect(home.store, isolation_level=None)
    database.migrate(connection, home.store, newer)
    database.migrate(connection, home.store, newer)
    assert connection.execute("SELECT id, colour FROM experiments").fetchall() == [("a1", "red")]
    assert database.version(connection) == len(newer)
    connection.close()
    with pytest.raises(OutdatedError, match="Restart the kernel"):
        Store.open(home)


def test_a_copy_of_the_file_is_kept_before_its_schema_changes_and_the_one_before_goes(tmp_path):
    home = Home(tmp_path / "home")
    with Store.open(home) as store:
        store.add_experiment("a1", ExperimentSpec("a", Bundle()), 1.0)
        home.store.with_name("store.sqlite.schema-3").touch()
        connection = sqlite3.connect(home.store, isolation_level=None)
        database.migrate(connection, home.store, (*schema.MIGRATIONS, "DELETE FROM experiments"))
        connection.close()
    (copy,) = home.root.glob("store.sqlite.schema-*")
    assert copy.name == f"store.sqlite.schema-{len(schema.MIGRATIONS)}"
    assert copy.stat().st_mode & 0o777 == 0o600
    kept = sqlite3.connect(copy)
    assert kept.execute("SELECT id FROM experiments").fetchall() == [("a1",)]
    assert database.version(kept) == len(schema.MIGRATIONS)
    kept.close()


def test_a_handle_that_is_open_when_a_newer_version_changes_the_schema_reads_and_writes_no_more(tmp_path):
    home = Home(tmp_path / "home")
    with Store.open(home) as store:
        store.add_experiment("a1", ExperimentSpec("a", Bundle()), 1.0)
        connection = sqlite3.connect(home.store, isolation_level=None)
        database.migrate(connection, home.store, (*schema.MIGRATIONS, "CREATE TABLE more (x)"))
        for use in (store.experiments, lambda: store.add_trial("a1", 1, {}, 1.0), lambda: repair(home.store)):
            with pytest.raises(OutdatedError, match="A newer jupyter-autotrain uses"):
                use()
        assert connection.execute("SELECT count(*) FROM trials").fetchone() == (0,)
        connection.close()


def test_a_migration_that_fails_half_way_changes_nothing(tmp_path):
    home = Home(tmp_path / "home")
    Store.open(home).close()
    connection = sqlite3.connect(home.store, isolation_level=None)
    with pytest.raises(sqlite3.OperationalError):
        database.migrate(connection, home.store, (*schema.MIGRATIONS, "CREATE TABLE half (x); SELECT nonsense"))
    assert database.version(connection) == len(schema.MIGRATIONS)
    assert connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'half'").fetchone() == (0,)
    connection.close()


def test_a_file_that_is_no_store_is_refused_and_left_alone(tmp_path):
    home = Home(tmp_path)
    home.store.write_bytes(b"not a database" * 100)
    with pytest.raises(StoreError) as caught:
        Store.open(home)
    assert "damaged" in caught.value.found
    assert caught.value.expected
    assert caught.value.action
    assert home.store.read_bytes() == b"not a database" * 100


def test_a_home_that_is_a_file_is_told_in_three_clauses(tmp_path):
    (tmp_path / "home").write_text("")
    with pytest.raises(StoreError) as caught:
        Store.open(Home(tmp_path / "home"))
    assert all((caught.value.found, caught.value.expected, caught.value.action))


@pytest.mark.parametrize(("number", "word"), [("ENOSPC", "full"), ("EROFS", "written"), ("EIO", "failed")])
def test_failures_of_the_disk_are_told_in_three_clauses(tmp_path, number, word):
    import errno

    with pytest.raises(StoreError) as caught, explained(tmp_path / "store"):
        raise OSError(getattr(errno, number), os.strerror(getattr(errno, number)), str(tmp_path / "x"))
    assert word in caught.value.found
    assert all((caught.value.expected, caught.value.action))
    assert isinstance(caught.value.__cause__, OSError)


def test_a_dropped_handle_gives_the_file_back(tmp_path):
    Store.open(Home(tmp_path / "home")).add_experiment("a1", ExperimentSpec("a", Bundle()), 1.0)
    assert not list((tmp_path / "home").glob("*-wal"))
