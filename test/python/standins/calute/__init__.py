# SPDX-License-Identifier: Apache-2.0
"""Stands in for calute in tests: config, router and registry of its sandboxes."""
