"""Executes a plan: `recipe` says what is done, as plain data without torch; `interpreter` does it."""
