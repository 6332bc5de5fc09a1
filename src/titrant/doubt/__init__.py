"""What if we are wrong: causes that nobody recorded, and trials that an estimate should survive."""
