#!/usr/bin/env node
// SPDX-License-Identifier: Apache-2.0
// Replays what the fuzzers of the Node package have found so far: test/fuzz.

import { fileURLToPath } from 'node:url';

import { replay } from '../fuzz/drive.mjs';
import * as values from '../fuzz/values_fuzz.mjs';
import * as wire from '../fuzz/wire_fuzz.mjs';

const corpus = (name) => fileURLToPath(new URL(`../fuzz/corpus/${name}`, import.meta.url));

process.exitCode = replay(new Map([[corpus('values'), values.target], [corpus('wire'), wire.target]]));
