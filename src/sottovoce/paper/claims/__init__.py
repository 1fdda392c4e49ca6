"""What the paper claims, checked with numbers: a function a claim; found by being there."""
