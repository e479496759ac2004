"""The traced model, torch-free: `OpGraph` and the rules that describe each family of ops."""
