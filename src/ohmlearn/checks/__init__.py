"""Checks that several packages share; each raises an error that names the value and a remedy."""
