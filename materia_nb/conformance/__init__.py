"""Running conformance vectors through the public API: ``python -m materia_nb.conformance FILE...``."""
