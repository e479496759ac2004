"""The way from the text of the executed cells to names, scopes and the history of bindings."""
