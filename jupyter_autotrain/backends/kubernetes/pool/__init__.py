"""Trials that long-running pods run one after another."""
