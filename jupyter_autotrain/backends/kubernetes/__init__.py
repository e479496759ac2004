"""Kubernetes: trials as Jobs, or as objects of the operators that are installed."""
