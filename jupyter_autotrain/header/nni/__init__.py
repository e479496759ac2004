"""Experiment files of NNI, which run here as they are."""
