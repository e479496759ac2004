"""What runs beside and inside a trial: the supervisor, the worker and the names a cell may use.

Everything here uses the standard library alone and imports as little of it as it can: every trial pays for it, and
it also runs where nothing else of this package is installed.
"""
