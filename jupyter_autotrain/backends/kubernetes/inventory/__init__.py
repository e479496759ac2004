"""What a cluster has for trials."""
