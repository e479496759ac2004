"""From the text of the executed cells to names, scopes and the history of what was bound."""
