"""Feedforward-tied energy-based models (Nest & Ernoult 2024): digital stages and analog blocks in one chain."""
