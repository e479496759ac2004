"""Trials as jobs of OpenPAI."""
