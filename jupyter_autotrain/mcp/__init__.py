"""What an agent may read and do: a server of the Model Context Protocol over the store and the client."""
