"""chimere-embed: a small encoder that turns texts into vectors, made to be compared."""
