"""Tools for agents that are models: files inside the project, and a shell that needs leave."""

from materia_nb.agents.tools.tool import MOST_TEXT, MoreTools, Tool, ToolResult, choose_tools
from materia_nb.agents.tools.toolbox import Toolbox

__all__ = ["MOST_TEXT", "MoreTools", "Tool", "ToolResult", "Toolbox", "choose_tools"]
