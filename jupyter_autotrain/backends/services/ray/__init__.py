"""Trials as jobs of an existing Ray cluster."""
