"""The API server: requests, watches, logs and commands in pods."""
