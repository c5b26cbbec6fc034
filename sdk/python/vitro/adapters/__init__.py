# SPDX-License-Identifier: Apache-2.0
"""vitro behind the interfaces of agent frameworks: one module for each. None of them needs its framework to be imported."""
