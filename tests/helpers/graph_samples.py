"""Provide graphs in the formats of other tools."""

from __future__ import annotations

from typing import Any


def langgraph(*edges: str) -> dict[str, Any]:
    """Return the LangGraph JSON for edges written as ``a -> b`` or, with a condition, as ``a -label> b``."""
    nodes: dict[str, None] = {}
    written = []
    for edge in edges:
        source, arrow, target = edge.split(" ")
        label = arrow[1:-1] if arrow != "->" else None
        written.append({"source": source, "target": target} | ({"data": label, "conditional": True} if label else {}))
        nodes |= dict.fromkeys((source, target))
    return {"nodes": [{"id": node, "data": {"name": node}} for node in nodes], "edges": written}


LANGGRAPH = {
    "an agent with tools": langgraph("__start__ -> agent", "agent -continue> tools", "agent -end> __end__", "tools -> agent"),
    "plan and execute": langgraph("__start__ -> plan", "plan -> act", "act -> replan", "replan -act> act", "replan -end> __end__"),
    "answers from documents": langgraph(
        "__start__ -> retrieve", "retrieve -> grade", "grade -yes> generate", "grade -no> rewrite", "rewrite -> retrieve",
        "generate -useful> __end__", "generate -unsupported> generate", "generate -off> rewrite",
    ),
    "a supervisor": langgraph(
        "__start__ -> boss", "boss -research> research", "boss -code> code", "boss -FINISH> __end__", "research -> boss", "code -> boss",
    ),
    "branches that join": langgraph("__start__ -> split", "split -> a", "split -> b", "a -> join", "b -> join", "join -> __end__"),
}  # fmt: skip
MERMAID = {
    "a chain": "flowchart LR\n  A[Plan] --> B(Build) --> C([Ship])",
    "a decision": "graph TD\n A[Write] --> B{Good?}\n B -->|no| A\n B -- yes --> C((Done))",
    "quoted and styled": 'flowchart TB\n  a["Build (all)"]:::hot --> b[["Test <br/> it"]];\n  classDef hot fill:#f00\n  style b fill:#eee',
    "several at once": "flowchart TD\n  A --> B & C\n  B & C --> D\n  subgraph box\n  direction LR\n  end",
    "drawn by LangGraph": (
        "---\nconfig:\n  flowchart:\n    curve: linear\n---\ngraph TD;\n\t__start__([<p>__start__</p>]):::first\n\tgrade(grade)\n"
        "\t__end__([<p>__end__</p>]):::last\n\t__start__ --> grade;\n\tgrade -. &nbsp;yes&nbsp; .-> __end__;\n"
        "\tgrade -. &nbsp;no&nbsp; .-> grade;\n\tclassDef default fill:#f2f0ff,line-height:1.2"
    ),
}
