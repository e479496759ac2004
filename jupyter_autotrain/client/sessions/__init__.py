"""Sessions: `mode: standard`, an interpreter at a place that keeps its state between cells."""
