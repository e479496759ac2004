"""Floor 7: `jupyter autotrain VERB`, the same verbs as the line magic."""
