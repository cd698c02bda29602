"""Training: fit, schedules, checkpoints, evaluation. The only place with optimizers and devices."""
