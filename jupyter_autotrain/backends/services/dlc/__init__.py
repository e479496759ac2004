"""Trials as jobs of PAI-DLC, the deep learning containers of Alibaba Cloud."""
