"""Images: layouts of files, the decoded cache, shards, batches and the regions of x*."""
