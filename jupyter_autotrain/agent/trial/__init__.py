"""The contents of a trial's directory, as the processes of its node read and write them."""
