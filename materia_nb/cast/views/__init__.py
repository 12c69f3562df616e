"""What a person sees of casts and loadouts: values that show themselves as text, SVG or escaped HTML. They know of no kernel."""
