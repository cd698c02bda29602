"""Networks for translation: encoder, decoder and beam search."""
