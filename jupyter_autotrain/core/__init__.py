"""Floor 1, the nouns: specs, states, records, the Backend and Tuner protocols, the wire format."""
