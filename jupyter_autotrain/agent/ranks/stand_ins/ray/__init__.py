"""A stand-in for what Ray's trial code calls: `ray.tune.report`, `ray.train.report`."""
