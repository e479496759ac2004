"""The rounds of a federated training: clients are followed, and their updates become one model."""
