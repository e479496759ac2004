"""Cost tables over variables: elimination, the Lagrangian bound on memory, branch and bound on what it leaves."""
