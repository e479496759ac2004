"""The client of a federated training: its rounds, the weights that it sends, and the masks over them."""
