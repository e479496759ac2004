"""`environment: match` pins what the kernel has, with all that it requires."""

import json
import zipfile

import pytest

from jupyter_autotrain.backends.python_packages import lock_versions
from jupyter_autotrain.errors import BackendUnavailableError
from tests.labs.wheels import write_wheel


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs small distributions for this test alone."""
    site = tmp_path / "site-packages"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))

    def one(name, version, requires=(), origin=None, installer="pip"):
        with zipfile.ZipFile(write_wheel(tmp_path / "wheels", name, version, requires=requires)) as wheel:
            wheel.extractall(site)
        info = site / f"{name}-{version}.dist-info"
        (info / "INSTALLER").write_text(installer)
        if origin:
            (info / "direct_url.json").write_text(json.dumps(origin))

    return one


def test_what_is_required_is_pinned_too_as_markers_and_extras_say(install):
    install("top", "1.0", ["middle[more]>=1", "gone; sys_platform == 'never'", "absent"])
    install("middle", "2.0", ["extra_one; extra == 'more'", "unasked; extra == 'other'"])
    install("extra_one", "3.0")
    install("unasked", "9")
    install("gone", "9")
    assert lock_versions(["top"]).lines == ("extra_one==3.0", "middle==2.0", "top==1.0")


def test_requirements_in_a_circle_end(install):
    install("one_way", "1", ["other_way"])
    install("other_way", "2", ["one_way"])
    assert lock_versions(["one_way"]).lines == ("one_way==1", "other_way==2")


def test_a_local_label_is_no_part_of_the_pin_and_is_told(install):
    install("heavy", "2.13.0+cpu")
    lock = lock_versions(["heavy"])
    assert lock.lines == ("heavy==2.13.0",)
    assert "heavy 2.13.0+cpu is matched as 2.13.0" in lock.notes[0]


@pytest.mark.parametrize(
    ("origin", "installer", "line"),
    [
        ({"url": "https://host.example/a/b", "vcs_info": {"vcs": "git", "commit_id": "abc"}}, "pip", "it @ git+https://host.example/a/b@abc"),
        ({"url": "https://host.example/it.whl", "archive_info": {}}, "pip", "it @ https://host.example/it.whl"),
        ({"url": "file:///home/ada/it.whl", "archive_info": {}}, "pip", "it==1"),
        ({"url": "file:///croot/it/work", "dir_info": {}}, "conda", "it==1"),
    ],
)  # fmt: skip
def test_where_it_was_installed_from_decides_how_it_is_installed_again(install, origin, installer, line):
    install("it", "1", origin=origin, installer=installer)
    assert lock_versions(["it"]).lines == (line,)


def test_an_installation_from_a_folder_cannot_be_matched_and_is_named(install):
    install("mine", "1", origin={"url": "file:///home/ada/mine", "dir_info": {"editable": True}})
    install("user", "1", ["mine"])
    with pytest.raises(BackendUnavailableError, match=r"mine \(file:///home/ada/mine\)"):
        lock_versions(["user"])
