"""What the API server completes and refuses before it stores an object."""
