"""How functions, classes and imports travel: as source where that gives what is live, else by value."""
