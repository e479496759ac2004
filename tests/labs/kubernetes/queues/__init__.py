"""Queues of the double: Kueue, which suspends objects, and Volcano, whose pods begin together or not at all."""
