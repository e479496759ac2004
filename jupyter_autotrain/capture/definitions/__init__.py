"""The travel of functions, classes and imports: as source where that gives the live ones, else by value."""
