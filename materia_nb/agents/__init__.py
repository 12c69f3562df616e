"""Who answers an agent socket: a model, a person, a function, a script, a recording or a command."""

from materia_nb.agents.base import (
    Agent,
    AgentError,
    Asking,
    Called,
    Message,
    Noted,
    Reply,
    Said,
    Spent,
    ToolCall,
    Turn,
    Usage,
)
from materia_nb.agents.command_agent import CommandAgent
from materia_nb.agents.function import FunctionAgent
from materia_nb.agents.model.agent import ModelAgent
from materia_nb.agents.person import PersonAgent
from materia_nb.agents.recorded import RecordedAgent
from materia_nb.agents.registry import AgentTable, agent_from
from materia_nb.agents.scripted import ScriptedAgent

__all__ = [
    "Agent",
    "AgentError",
    "AgentTable",
    "Asking",
    "Called",
    "CommandAgent",
    "FunctionAgent",
    "Message",
    "ModelAgent",
    "Noted",
    "PersonAgent",
    "RecordedAgent",
    "Reply",
    "Said",
    "ScriptedAgent",
    "Spent",
    "ToolCall",
    "Turn",
    "Usage",
    "agent_from",
]
