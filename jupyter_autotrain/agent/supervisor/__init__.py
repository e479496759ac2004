"""The supervisor: one small process per trial and node that owns its ranks, streams, limits and exit cause."""
