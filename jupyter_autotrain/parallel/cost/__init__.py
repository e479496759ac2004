"""Costs of every choice on a cluster: compute, collectives, states, activations, pipelines. Decides nothing."""
