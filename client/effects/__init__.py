"""What a condition does to a clip: effects, their parameters, and the draws that fix them."""
