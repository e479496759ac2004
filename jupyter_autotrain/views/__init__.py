"""The parts of every view of experiments, without IPython: feed, run card, series, best trial, tables of trials.

Widgets, verbs and servers draw what these modules give. Nothing is imported here: each module is loaded by its user.
"""
