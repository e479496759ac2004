"""The results of an experiment as a whole: frames and groups of trials, importances, plots, a report."""
