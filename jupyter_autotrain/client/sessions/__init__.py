"""Sessions: `mode: standard`, an interpreter at a place that keeps its state between cells."""

from jupyter_autotrain.client.sessions.handle import CellError, Session
from jupyter_autotrain.client.sessions.opening import SessionRequest, find_session, open_session, open_sessions

__all__ = ["CellError", "Session", "SessionRequest", "find_session", "open_session", "open_sessions"]
