"""Data flow B: from a model to a plan of its split over devices.

Inner layers, bottom-up: arrays and placement, graph, cost, decision, search, plan, trace, api.
`api.plan` is the entry point.
"""
