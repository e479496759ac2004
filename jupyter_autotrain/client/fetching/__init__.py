"""Fetching to this machine what `data:` names elsewhere: labels of CVAT and Label Studio, and files through fsspec."""
