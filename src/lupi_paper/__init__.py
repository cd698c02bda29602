"""The experiments of the paper, as a plug-in for lupi.

Lambert, Sener, Savarese: "Deep Learning under Privileged Information Using Heteroscedastic
Dropout", CVPR 2018. `translation/` is its second task, `theory/` its bounds in numbers, and
`configs/` its comparisons.
"""
