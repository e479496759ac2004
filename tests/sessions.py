"""What tests of sessions at every place ask of one."""

from __future__ import annotations

from pathlib import Path

from jupyter_autotrain.client.sessions.handle import Session


def printed(session: Session, code: str) -> str:
    """Run a cell and return what it prints."""
    said = []
    session.run(code, said.append)
    return "".join(str(one["content"].get("text", "")) for one in said if one["msg_type"] == "stream")


def assert_files_go_there(session: Session, folder: Path) -> None:
    """Send a file, and read it in a cell."""
    (folder / "notes.txt").write_text("small")
    session.put_file(folder / "notes.txt", "notes.txt")
    assert printed(session, "print(open('notes.txt').read())") == "small\n"
    assert session.files() == {"notes.txt": 5}
