"""Hosts that are reached by SSH: connections, what is sent over them, and the agent at the other end."""
