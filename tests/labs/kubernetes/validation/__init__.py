"""Completion and refusal of objects by the API server, before it stores them."""
