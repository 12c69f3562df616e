"""Tests that use a real JupyterLab through a headless Chromium."""
