"""What the tests of panels share."""

from __future__ import annotations

import pytest

from materia_nb.widgets.frontend import Front


@pytest.fixture(scope="session", autouse=True)
def shared_code():
    """The one widget that all panels of a kernel share is there before a test counts widgets."""
    Front([], []).close()
