"""Theory: the bounds of the CVPR 2018 paper as functions, and its oracle as a simulation."""
