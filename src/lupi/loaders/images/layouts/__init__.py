"""Layouts of image files: a folder or zip to a list of labelled files with regions."""
