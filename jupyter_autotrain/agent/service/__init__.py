"""The agent: it answers requests over a byte stream, and keeps nothing."""
