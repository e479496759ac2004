"""The tools by which an agent reads and acts: a server of the Model Context Protocol over the store and the client."""
