"""What a run keeps on disk, and reading it back."""
