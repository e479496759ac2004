"""The one queue of a home: whose turn it is, and what nodes can give to whom."""
