"""What more users, more workers and larger memories cost, and what a million users would need."""
