"""Agents that are language models, on pydantic-ai (the extra ``models``), which loads when one is first made."""

from materia_nb.agents.model.model_agent import ModelAgent

__all__ = ["ModelAgent"]
