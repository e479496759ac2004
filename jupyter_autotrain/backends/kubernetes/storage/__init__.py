"""How code, data and checkpoints get to pods and back."""
