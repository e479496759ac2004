"""Rehearsal of a training loop: two steps at the real number of ranks, in one process, before ranks are queued for."""
