"""Objects by their digest at a place: code, data and checkpoints, sent, verified, held while used, and evicted."""
