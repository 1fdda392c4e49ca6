"""What a coalition or a wire-tapper can learn, shown and not claimed: verdicts from a View."""
