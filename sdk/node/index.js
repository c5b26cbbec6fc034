// SPDX-License-Identifier: Apache-2.0
export {
	Cancelled, CpuLimit, Crashed, Lost, MemoryLimit, NoResult, Refused, ResultLimit, Timeout, ToolError, Unsupported, VitroError,
} from './lib/errors.js';
export { Foreign, Malformed, NotPlain } from './lib/codec.mjs';
export { Result } from './lib/result.js';
export { Sandbox } from './lib/sandbox.js';
export { Schema, SchemaError } from './lib/schema.js';
export { ToolHost } from './lib/toolhost.js';
