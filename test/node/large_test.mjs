// SPDX-License-Identifier: Apache-2.0
// Results of 300 kB, 10 MB and 100 MB come back whole, whoever gives them, and in both kinds of cells.

import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ToolHost } from '../../sdk/node/index.js';
import { check, checkEqual, main, testNode as test } from '../lib/vitrotest.mjs';
import { POLICY, withSandbox } from './sandbox.mjs';

const SIZES = [300_000, 10_000_000, 100_000_000];
const policy = { ...POLICY, limits: { result_mb: 128, memory_mb: 1500 } };
const MODULE = 'export const bytes = ({ size }) => Buffer.alloc(size, "ab"); export const text = ({ size }) => "é".repeat(size / 2);';

async function withModule(act) {
	const folder = mkdtempSync(join(tmpdir(), 'node-large-'));
	chmodSync(folder, 0o755);
	writeFileSync(join(folder, 'large.mjs'), MODULE);
	try {
		await act(join(folder, 'large.mjs'));
	} finally {
		rmSync(folder, { recursive: true });
	}
}

function checkBytes(value, size, what) {
	check(Buffer.isBuffer(value) && value.length === size && value.equals(Buffer.alloc(size, 'ab')), () => `${what}: ${value?.length} bytes for ${size}`);
}

function checkText(value, size, what) {
	check(value === 'é'.repeat(size / 2), () => `${what}: ${value?.length} characters for ${size / 2}`);
}

test('callModule', () => withModule((file) => withSandbox(async (sandbox) => {
	for (const size of SIZES) {
		checkBytes(await sandbox.callModule(file, 'bytes', [{ size }]), size, 'bytes');
		checkText(await sandbox.callModule(file, 'text', [{ size }]), size, 'a text');
	}
}, { policy })));

test('a tool host', () => withModule(async (file) => {
	const host = new ToolHost({ policy });
	try {
		host.register({ module: file, export: 'bytes' });
		host.register({ module: file, export: 'text' });
		host.register(({ size }) => new Uint8Array(size).fill(7), { name: 'own' });
		for (const size of SIZES) {
			checkBytes((await host.call('bytes', { size })).value, size, 'bytes');
			checkText((await host.call('text', { size })).value, size, 'a text');
			const { value } = await host.call('own', { size });
			check(value.length === size && value[0] === 7 && value[size - 1] === 7, () => `by its source: ${value?.length} of ${size}`);
		}
	} finally {
		await host.close();
	}
}));

test('eval in a Node that is started anew, and through tools there and back', async () => {
	for (const fork of [true, false])
		await withSandbox(async (sandbox) => {
			checkBytes(await sandbox.eval('return Buffer.alloc(100_000_000, "ab")'), 100_000_000, `bytes, ${fork ? 'forked' : 'anew'}`);
			const tools = { same: (value) => value, size: ({ length }) => length };
			for (const size of SIZES.slice(0, 2))
				checkEqual(await sandbox.eval(`const data = Buffer.alloc(${size}, "ab"); return [await tools.size(data), (await tools.same(data)).equals(data)]`, { tools }), [size, true], `${size} bytes, ${fork ? 'forked' : 'anew'}`);
		}, { policy, fork });
});

await main();
