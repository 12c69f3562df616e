"""The files of the gallery, which materia_nb/cast/gallery.py reads: a package, so that pytest finds the tests in it."""
