"""What every tab answers its page with: the desk, and what it hands on."""
