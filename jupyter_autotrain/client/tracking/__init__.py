"""Mirrors of experiments at tracking servers and in their files, by one exporter protocol."""
