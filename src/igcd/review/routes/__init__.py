"""What the page asks the server, by topic."""
