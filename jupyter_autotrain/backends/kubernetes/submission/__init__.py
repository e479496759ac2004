"""What is made and sent of a trial, before it runs."""
