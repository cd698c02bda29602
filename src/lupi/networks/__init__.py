"""Networks: students for images, vectors, texts and sentences."""
