"""Loops compiled by numba; importing one of these modules loads numba, so it is done late.

They take arrays and numbers only. What is computed is defined elsewhere, in numpy: kernels by
their coefficients (`titrant.kernels`), weights in `titrant.estimators.weight`, terms in
`titrant.estimators.base`. The loops here do the same to a million rows in one reading.
"""
