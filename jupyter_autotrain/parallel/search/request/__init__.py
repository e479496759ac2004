"""The request of a search: modes, limits, pins, and the space of outer choices."""
