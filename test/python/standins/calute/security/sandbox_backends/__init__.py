# SPDX-License-Identifier: Apache-2.0

backends = {}


def register_backend(name, cls):
    backends[name] = cls


def get_backend(name, sandbox_config):
    return backends[name](sandbox_config=sandbox_config)
