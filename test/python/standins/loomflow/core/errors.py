# SPDX-License-Identifier: Apache-2.0


class LoomError(Exception):
    pass


class ConfigError(LoomError):
    pass
