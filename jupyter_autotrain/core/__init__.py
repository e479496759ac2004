"""The common ground of all packages: specs, states, records, the Backend and Tuner protocols, the wire format."""
