"""What all packages share: specs, states, records, the Backend and Tuner protocols, the wire format."""
