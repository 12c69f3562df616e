"""Who answers an agent socket: a model, a person, a function, a script, a recording or a command."""

from materia_nb.agents.base import Agent, AgentError, Message, Reply, Turn, Usage
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
    "CommandAgent",
    "FunctionAgent",
    "Message",
    "ModelAgent",
    "PersonAgent",
    "RecordedAgent",
    "Reply",
    "ScriptedAgent",
    "Turn",
    "Usage",
    "agent_from",
]
