"""The content of the messages about a cell: its text, its end, its failure."""

from __future__ import annotations

from collections.abc import Sequence

from jupyter_autotrain.agent.session.messages import SESSION, Message


class CellError(Exception):
    """An exception of a cell in a session, with the traceback as its kernel drew it."""

    def __init__(self, content: Message) -> None:
        super().__init__(f"{content.get('ename')}: {content.get('evalue')}")
        self.traceback: Sequence[str] = [str(line) for line in content.get("traceback") or ()]

    def _render_traceback_(self) -> list[str]:
        return [*self.traceback]


def ends(one: Message) -> set[str]:
    """Return what of a request a message ends: its reply, and that all it has shown has come."""
    if one["channel"] == "shell":
        return {"reply"}
    is_idle = one["msg_type"] == "status" and one["content"].get("execution_state") == "idle"
    return {"idle"} if is_idle else set()


def text_of(one: Message) -> str:
    """Return what a message holds for people, as text; "" where it holds nothing."""
    content = one["content"]
    if one["msg_type"] == "stream":
        return str(content.get("text", ""))
    if one["msg_type"] in {"display_data", "execute_result"}:
        return f"{(content.get('data') or {}).get('text/plain', '')}\n"
    return ""


def failure(one: Message) -> CellError | None:
    """Return the exception that a reply tells; None where it tells none."""
    content = one["content"]
    if one["channel"] != "shell" or content.get("status") == "ok":
        return None
    return CellError({"ename": "Aborted", "evalue": "a cell before it has failed", **content})


def as_warning(one: Message) -> Message | None:
    """Return what a session warns of, as a message of the stream stderr; None where it warns of nothing."""
    if one["channel"] != SESSION or one["msg_type"] != "warning":
        return None
    content = {"name": "stderr", "text": f"{one['content'].get('text', '')}\n"}
    return {**one, "msg_type": "stream", "content": content}
