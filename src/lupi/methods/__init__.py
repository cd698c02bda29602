"""Methods: how training uses x*. One file each, independent of datasets and the trainer."""
