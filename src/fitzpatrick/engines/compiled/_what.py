"""What a kernel writes besides the loss of each row."""

GRADIENT, Y_STAR, CURVATURE = 0, 1, 2
