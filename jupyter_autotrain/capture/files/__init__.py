"""The files that travel: those that the code opens, imports and writes."""
