"""Noise whose variance depends on x*.

draws.py       noise, and what shares a draw
priors.py      the variance without h*: a number, or one inside a region and one outside
penalties.py   divergences from the prior
readings.py    the paper's text, and its authors' code
variances.py   from x* to the log-variance at a site: budget, missing rows
dropout.py     HeteroscedasticDropout as one layer
site_noise.py  such layers at the sites of any network
encoders.py    networks h* of x*
"""

from lupi.noise.dropout import HeteroscedasticDropout, NoisyOutput
from lupi.noise.priors import RegionPrior
from lupi.noise.site_noise import NoisePass, SiteNoise

__all__ = ["HeteroscedasticDropout", "NoisePass", "NoisyOutput", "RegionPrior", "SiteNoise"]
