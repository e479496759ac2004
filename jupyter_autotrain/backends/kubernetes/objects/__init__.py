"""Objects of a cluster as JSON: their kinds, names and labels, and what is read of them."""
