"""Objects of a cluster as JSON: their kinds, names and labels, and what they say of a trial that waits or has ended."""
