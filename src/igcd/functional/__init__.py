"""The maths: arrays or tensors in, arrays or tensors out, no state."""
