"""Images in webdataset shards: their format, writing and streaming."""
