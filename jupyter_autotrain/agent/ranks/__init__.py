"""The process of one rank: it runs the cell, and gives it `report`, `checkpoint` and the other names of a trial."""
