"""How much each constant of the default call matters."""
