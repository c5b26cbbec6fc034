// SPDX-License-Identifier: Apache-2.0
/*
 * Values and messages: what a cell and its host say to each other, as bytes. The format is that of
 * runtimes/python/codec.py; docs/values.md has the table of what becomes what.
 *
 *     u32 n, n bytes of JSON, u32 count, count × u64 lengths, the buffers        (least significant byte first)
 *
 * The host reads what a cell wrote, and a cell may be anybody's. Reading builds plain data and nothing else, what it
 * costs is bounded by the bytes that came, and it throws Malformed and nothing else. No object that was read has a
 * property of its own named __proto__: what copies objects would follow it.
 *
 * The same files are part of the runtime in a cell and of the package on the host.
 */

export * from './plain.mjs';
export * from './message.mjs';
export * from './foreign.mjs';
export * from './encode.mjs';
export * from './decode.mjs';
export * from './collected.mjs';
