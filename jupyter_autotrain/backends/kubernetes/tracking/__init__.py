"""The life of a trial in the manager: its state, its files, its end."""
