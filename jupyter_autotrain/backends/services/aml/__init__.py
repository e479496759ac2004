"""Trials as command jobs of Azure Machine Learning."""
