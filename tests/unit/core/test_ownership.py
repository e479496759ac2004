"""A home is its user's alone, or it is refused."""

import os
import stat

import pytest

from jupyter_autotrain import manager
from jupyter_autotrain.core.home import Home, make_private
from jupyter_autotrain.errors import AutotrainError, StoreError
from jupyter_autotrain.store import Store

FILES = (
    "store.sqlite",
    "store.sqlite-wal",
    "store.sqlite-shm",
    "manager.lock",
    "manager.log",
    "manager.sock",
    "drafts",
)


@pytest.fixture
def home(tmp_path):
    return Home(tmp_path / "above" / "home")


def test_a_home_is_made_with_all_above_it_for_its_user_alone(home):
    before = os.umask(0)
    try:
        make_private(home)
    finally:
        os.umask(before)
    for folder in (home.root, home.root.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("mode", [0o777, 0o722, 0o757])
def test_a_home_below_a_folder_that_others_can_write_is_refused(home, mode):
    home.root.mkdir(parents=True)
    home.root.parent.chmod(mode)
    for use in (Store.open, manager.ensure):
        with pytest.raises(StoreError, match=r"Others can write to .*above") as caught:
            use(home)
        assert "chmod go-w" in str(caught.value)
        assert len(str(caught.value).splitlines()) == 3
    assert list(home.root.iterdir()) == []


def test_a_home_that_others_can_write_is_refused_unless_it_is_new(home):
    home.root.mkdir(parents=True)
    home.root.chmod(0o777)
    Store.open(home).close()
    assert stat.S_IMODE(home.root.stat().st_mode) == 0o700
    for mode in (0o777, 0o1777):
        home.root.chmod(mode)
        with pytest.raises(StoreError, match="Others can write"):
            Store.open(home)


def test_a_folder_with_the_sticky_bit_is_taken(home):
    home.root.parent.mkdir()
    home.root.parent.chmod(0o1777)
    Store.open(home).close()


def test_what_really_lies_there_is_checked_when_the_way_leads_through_links(home, tmp_path):
    home.root.parent.mkdir()
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    home.root.symlink_to(tmp_path / "open" / "home")
    (tmp_path / "open" / "home").mkdir()
    with pytest.raises(StoreError, match=r"Others can write to .*open"):
        Store.open(home)
    (tmp_path / "open").chmod(0o755)
    Store.open(home).close()


def test_a_home_of_somebody_else_is_refused_for_every_use(home, monkeypatch):
    Store.open(home).close()
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    for use in (Store.open, manager.ensure):
        with pytest.raises(StoreError, match="belongs to"):
            use(home)


@pytest.mark.parametrize("name", FILES)
def test_no_link_in_a_home_is_followed(home, tmp_path, name):
    Store.open(home).close()
    (home.root / name).unlink(missing_ok=True)
    (home.root / name).symlink_to(tmp_path / "elsewhere")
    for use in (Store.open, manager.ensure):
        with pytest.raises(AutotrainError, match=f"{name} is a link"):
            use(home)
    assert not (tmp_path / "elsewhere").exists()
