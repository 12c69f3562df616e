"""Graphs of other tools, as these write them."""

from __future__ import annotations

from typing import Any


def langgraph(*edges: str) -> dict[str, Any]:
    """Return the JSON of a graph whose edges are written ``a -> b`` or, where they are conditional, ``a -label> b``."""
    nodes: dict[str, None] = {}
    written = []
    for edge in edges:
        source, arrow, target = edge.split(" ")
        label = arrow[1:-1] if arrow != "->" else None
        written.append(
            {"source": source, "target": target} | ({"data": label, "conditional": True} if label else {})
        )
        nodes |= dict.fromkeys((source, target))
    return {"nodes": [{"id": one, "data": {"name": one}} for one in nodes], "edges": written}


def n8n(types: dict[str, str], connections: dict[str, list[list[str]]], **more: Any) -> dict[str, Any]:
    """Return a workflow: nodes by type, and for each output of a node where it leads."""
    return {
        "nodes": [
            {"name": name, "type": f"n8n-nodes-base.{type_}", **more.get(name, {})}
            for name, type_ in types.items()
        ],
        "connections": {
            name: {"main": [[{"node": one, "type": "main", "index": 0} for one in group] for group in groups]}
            for name, groups in connections.items()
        },
    }


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
N8N = {
    "a chat": n8n({"Chat": "chatTrigger", "Agent": "agent"}, {"Chat": [["Agent"]]}),
    "a condition": n8n(
        {"Hook": "webhook", "Paid?": "if", "Thank": "emailSend", "Remind": "emailSend"},
        {"Hook": [["Paid?"]], "Paid?": [["Thank"], ["Remind"]]},
    ),
    "a switch": n8n(
        {"Mail": "emailReadImapTrigger", "Which": "switch", "Bill": "set", "Bug": "set", "Rest": "noOp", "Log": "set"},
        {"Mail": [["Which"]], "Which": [["Bill"], ["Bug"], ["Rest"]], "Bill": [["Log"]], "Bug": [["Log"]], "Rest": [["Log"]]},
    ),
    "item by item": n8n(
        {"Go": "manualTrigger", "Pages": "httpRequest", "Each": "splitInBatches", "Sum up": "agent", "Long?": "if",
         "Shorten": "code", "Send": "emailSend", "note": "stickyNote"},
        {"Go": [["Pages"]], "Pages": [["Each"]], "Each": [["Send"], ["Sum up"]], "Sum up": [["Long?"]],
         "Long?": [["Shorten"], ["Each"]], "Shorten": [["Each"]]},
    ),
    "an error output": n8n(
        {"Go": "manualTrigger", "Fetch": "httpRequest", "Use": "set", "Say so": "emailSend"},
        {"Go": [["Fetch"]], "Fetch": [["Use"], ["Say so"]]},
        Fetch={"onError": "continueErrorOutput"},
    ),
}  # fmt: skip
