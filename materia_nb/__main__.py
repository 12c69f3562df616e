"""Run the command-line program ``materia`` with ``python -m materia_nb``."""

from __future__ import annotations

import sys

from materia_nb.shell.commands import main

if __name__ == "__main__":
    sys.exit(main())
