"""The travel of values: all in one pickle, so that what names share they share in a trial."""
