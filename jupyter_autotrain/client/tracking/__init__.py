"""Mirrors of experiments at a tracking server: MLflow, by an exporter protocol that others can have too."""
