"""A Kubernetes cluster in one process: a strict API server, and nodes that run pods as processes."""
