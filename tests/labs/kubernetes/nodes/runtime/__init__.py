"""The container runtime: the first process of a node's namespaces, which starts, ends and logs its containers.

It runs alone, without the rest of the package, and imports the standard library only. It ends when its standard input
closes, and the kernel ends everything of the node with it.
"""
