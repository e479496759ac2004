"""Nothing but SQLite opens the store's files: a process that closes any descriptor of them loses its locks."""

import subprocess
import sys

from jupyter_autotrain.core.home import Home

# Python tells of every file it opens; SQLite opens its own without telling.
ORDINARY_USE = """
import os, sys
opened = []
def look(event, details):
    if event == "open" and "store.sqlite" in os.path.basename(str(details[0])):
        opened.append(details[0])
sys.addaudithook(look)

import jupyter_autotrain as at
from jupyter_autotrain import cli, manager
from jupyter_autotrain.client import default_home
from jupyter_autotrain.client.send import send
from jupyter_autotrain.core.spec import Bundle, ExperimentSpec

manager.ensure = manager.notify = lambda *arguments: True
handle = send(default_home(), ExperimentSpec("a", Bundle()), lambda folder: folder.mkdir() or Bundle(), {})
at.attach("a").store.close_experiment(handle.id, 1.0)
for verb in ("ls", "show a", "doctor", "why a", "clean a", "clean a --yes"):
    assert cli.main(verb.split()) == 0, verb
handle.store.close()
print("opened:", opened)
"""


def test_nothing_but_sqlite_opens_the_store_in_ordinary_use(tmp_path):
    home = Home(tmp_path / "home")
    argv = [sys.executable, "-c", ORDINARY_USE]
    done = subprocess.run(
        argv,
        capture_output=True,
        text=True,
        check=False,
        env={"JUPYTER_AUTOTRAIN_HOME": str(home.root), "PATH": "/bin"},
    )
    assert done.stdout.splitlines()[-1:] == ["opened: []"], done.stdout + done.stderr
