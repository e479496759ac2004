"""Controllers: each makes the world as the objects of one kind say."""
