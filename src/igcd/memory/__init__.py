"""What is kept of the past: the support set S and the replay buffer R."""
