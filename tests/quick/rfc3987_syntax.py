"""An empty replacement for a module that takes more than a second to import and that jsonschema does not require."""

raise ImportError("left out: slow, and nothing here is an internationalised address")
