"""Measurements of the project: what must hold, printed with its bound. No part of the package."""
