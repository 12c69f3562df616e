"""Tests in a real JupyterLab, seen through a headless Chromium."""
