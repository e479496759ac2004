"""What every choice costs on a cluster: compute, collectives, states, activations, pipelines. Decides nothing."""
