"""Scenarios: directed stories, each under the id that the catalogue gives it. The right protocol keeps every claim.

A seeded bug that storms hardly ever meet names the scenario that catches it; so they live here and not with the tests.
"""
