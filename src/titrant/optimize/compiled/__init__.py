"""Loops compiled by numba; importing one of these modules loads numba, so it is done late."""
