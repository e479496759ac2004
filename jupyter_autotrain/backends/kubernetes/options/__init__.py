"""The options of profiles and headers."""
