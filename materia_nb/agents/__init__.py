"""Agents that answer the turns of a socket: models, people, functions, scripts, recordings and programs."""

from materia_nb.agents.command_agent import CommandAgent, JsonOutput
from materia_nb.agents.interface import (
    Agent,
    AgentError,
    CallEvent,
    NeedsApproval,
    NoteEvent,
    Reply,
    TextEvent,
    Turn,
    Usage,
    UsageEvent,
)
from materia_nb.agents.model_agent import ModelAgent
from materia_nb.agents.notebook_agents import (
    AgentLike,
    AgentTable,
    FunctionAgent,
    PersonAgent,
    RecordedAgent,
    ScriptedAgent,
    agent_from,
)
from materia_nb.engine.conversation import Message, ToolCall

__all__ = [
    "Agent",
    "AgentError",
    "AgentLike",
    "AgentTable",
    "CallEvent",
    "CommandAgent",
    "FunctionAgent",
    "JsonOutput",
    "Message",
    "ModelAgent",
    "NeedsApproval",
    "NoteEvent",
    "PersonAgent",
    "RecordedAgent",
    "Reply",
    "ScriptedAgent",
    "TextEvent",
    "ToolCall",
    "Turn",
    "Usage",
    "UsageEvent",
    "agent_from",
]
