"""Trials as jobs of a DLTS (DLWorkspace) cluster."""
