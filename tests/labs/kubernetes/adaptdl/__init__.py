"""AdaptDL in the double: its controller with an allocator, and its supervisor."""
