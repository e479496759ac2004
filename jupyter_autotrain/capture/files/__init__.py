"""Which files travel: what the code opens, imports and writes."""
