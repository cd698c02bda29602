"""Tests, intervals and power: numbers in, numbers out."""
