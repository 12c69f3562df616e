"""``python -m materia_nb.doctor``: the same as ``%materia doctor``, for the current directory."""

from materia_nb.doctor import checkup
from materia_nb.workbench import Workbench

print(checkup(Workbench()))
