"""Figures of a page: counts and results in, inline SVG out."""
