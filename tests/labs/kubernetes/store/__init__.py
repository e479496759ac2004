"""All objects of the double, with their history."""
