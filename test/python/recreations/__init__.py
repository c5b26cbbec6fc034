# SPDX-License-Identifier: Apache-2.0
"""What the sandboxes do that vitro has drop-ins for, made anew for tests and benchmarks: as controls, and to compare with."""
