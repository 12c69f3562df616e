"""Fixtures for the tests of panels."""

from __future__ import annotations

import pytest

from materia_nb.widgets.frontend import Front


@pytest.fixture(scope="session", autouse=True)
def shared_code():
    """Create the widget that all panels of a kernel share before a test counts widgets."""
    Front([], []).close()
