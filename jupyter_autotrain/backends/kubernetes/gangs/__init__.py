"""Trials on several nodes that start on all of them or on none."""
