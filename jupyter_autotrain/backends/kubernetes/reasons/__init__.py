"""What a trial waits for and why it ended, in a user's words. Pure."""
