"""The ways of code, data and checkpoints to pods and back."""
