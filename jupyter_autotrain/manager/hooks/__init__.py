"""Telling hooks of ends and failures, outside of the main loop."""
