# SPDX-License-Identifier: Apache-2.0
"""Stands in for loomflow in tests: the classes that its sandboxes meet, and an agent whose model is a script."""
