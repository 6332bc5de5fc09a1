"""What must be estimated before a policy can be valued, and what it says of each row."""
