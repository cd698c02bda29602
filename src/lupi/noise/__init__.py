"""Noise whose variance depends on x*: layer.py is the noise, sites.py where it can be added."""

from lupi.noise.layer import HeteroscedasticDropout, NoisyOutput, RegionPrior
from lupi.noise.site_noise import NoisePass, SiteNoise

__all__ = ["HeteroscedasticDropout", "NoisePass", "NoisyOutput", "RegionPrior", "SiteNoise"]
