"""What comes back of trials: watched objects, followed logs, collected files."""
