"""Nodes: a scheduler, and kubelets that run the containers of pods as real processes in namespaces."""
