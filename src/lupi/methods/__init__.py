"""Methods: how x* takes part in training. One file each; knows no data set and no trainer."""
