"""Data flow B: from a model to a plan of its split over devices.

Inner layers, bottom-up: arrays, graph, cost, decision, apply, choices, search, plan, trace, api.
`api.plan` is the entry point; `Plan.apply` runs a plan.
"""
