"""Data flow B: from a model to a running split.

Inner layers, bottom-up: placement, graph, cost, search, plan, trace, api. `api.plan` is the entry point.
"""
