"""Materia NB: loadouts of agents and utilities, cast step by step in a notebook."""

__version__ = "0.1.0"
