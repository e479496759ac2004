"""The way to a cluster: credentials, requests, commands in pods, and what its API server serves."""
