"""Training services with an HTTP interface. Each is a `Service` under one backend."""
