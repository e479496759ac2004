"""The outer choices (meshes, stages, microbatches, schedules): branch and bound, local search, baselines."""
