"""The life of a trial in the manager: watched objects, followed logs, collected files, its state, its end."""
