"""Walk B, from a model to a running split.

Inner floors, bottom-up: placement, graph, cost, search, plan, trace, api. `api.plan` is the door.
"""
