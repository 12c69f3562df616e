"""A program that runs a cast with a model and continues after each interrupt. Usage: ``... URL PROJECT``."""

from __future__ import annotations

import sys
from pathlib import Path

import cast_helpers as h
from materia_nb.agents import AgentTable, ModelAgent
from materia_nb.cast import resume_cast, start_cast


def main(url: str, project: str) -> None:
    root = Path(project)
    agents = AgentTable(ModelAgent("openai:tiny", base_url=url, first_pause_s=0.001))
    earlier = sorted(root.glob("casts/*/"))
    cast = (
        resume_cast(earlier[-1], agents)
        if earlier
        else start_cast(h.plan(root, h.loop_config(castContext="none")), "thirty things", agents)
    )
    while cast.status in ("ready", "waiting"):
        try:
            cast.run()
        except KeyboardInterrupt:
            cast.close()
            cast = resume_cast(cast.run_dir, agents)
    if cast.failure is not None:
        sys.exit(str(cast.failure))


if __name__ == "__main__":
    main(*sys.argv[1:])
