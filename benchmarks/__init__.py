"""Speed and accuracy as ratios, measured side by side; one command each."""
