"""How values travel: one pickle per group of names that share memory or objects."""
