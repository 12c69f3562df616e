"""Browser tests that use a real JupyterLab in a headless Chromium."""
