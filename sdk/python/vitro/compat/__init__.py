# SPDX-License-Identifier: Apache-2.0
"""Drop-ins for the subprocess sandboxes of other frameworks: one import is changed, and each call runs sealed.

    from vitro.compat.loomflow import SubprocessSandbox         # of loomflow and jeevesagent
    from vitro.compat.calute import SubprocessSandboxBackend    # of calute and xerxes

Neither framework is needed to import them. docs/migrate-loomflow.md and docs/migrate-calute.md say what changes.
"""
