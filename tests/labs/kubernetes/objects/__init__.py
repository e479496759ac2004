"""Objects of the API as values: their kinds, their metadata, and how they are selected and patched."""
