// SPDX-License-Identifier: Apache-2.0
/*
 * Model-written JavaScript that attacks, under the default policy: what attacks.mjs has, each in a fork and in a Node that
 * is started anew, and as a control in a plain Node, where it must succeed.
 */
import { execFile, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import dgram from 'node:dgram';
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BINARY, check, checkEqual, main, testNode as test } from '../lib/vitrotest.mjs';
import { attacks } from './attacks.mjs';
import { Cells } from './cell.mjs';

const ADDON = join(process.env.VITRO_TEST_BIN ?? join(BINARY, '..', 'test'), 'vitro-attack.node');
const VARIABLE = 'VITRO_TEST_HIDDEN';
const LIMIT_MS = 15_000;

/** What there is to reach on the host. */
class Prey {
	#ends = [];

	static async make() {
		const prey = new Prey();
		const folder = mkdtempSync(join(tmpdir(), 'node-prey-'));
		prey.#ends.push(() => rmSync(folder, { recursive: true }));
		chmodSync(folder, 0o777);
		for (const [name, text] of [['secret', 'reached'], ['secret.mjs', 'export default "reached"'], ['secret.cjs', 'module.exports = "reached"']])
			writeFileSync(join(folder, name), text, { mode: 0o644 });
		const hidden = `vitro-hidden-${randomBytes(16).toString('hex')}`;
		process.env[VARIABLE] = hidden;
		const sleeper = spawn('/bin/sleep', ['300']);
		prey.#ends.push(() => sleeper.kill('SIGKILL'));
		prey.at = {
			folder, secret: join(folder, 'secret'), module: join(folder, 'secret.mjs'), pid: sleeper.pid, variable: VARIABLE,
			hash: createHash('sha256').update(hidden).digest('hex'), path: join(folder, 'socket'), abstract: `vitro-${process.pid}`,
			port: await prey.#serve(createServer((_, response) => response.end('reached')), [0, '127.0.0.1']), udp: await prey.#echo(),
		};
		await prey.#serve(net.createServer(), [prey.at.path]);
		await prey.#serve(net.createServer(), [`\0${prey.at.abstract}`]);
		chmodSync(prey.at.path, 0o777);
		return prey;
	}

	async #serve(server, where) {
		await new Promise((settle, reject) => server.on('error', reject).listen(...where, settle));
		this.#ends.push(() => server.close(server.closeAllConnections?.()));
		return server.address()?.port;
	}

	/** Sends back what comes, as an answer that there is no such name. */
	async #echo() {
		const socket = dgram.createSocket('udp4');
		socket.on('message', (message, from) => {
			if (message.length > 12)
				message.writeUInt16BE(0x8183, 2);
			socket.send(message, from.port, from.address);
		});
		await new Promise((settle) => socket.bind(0, '127.0.0.1', settle));
		this.#ends.push(() => socket.close());
		return socket.address().port;
	}

	end() {
		for (const end of this.#ends)
			end();
	}
}

/** What an attack comes to in a Node as it is. */
async function runPlain(code, at) {
	const folder = join(at.folder, 'plain');
	mkdirSync(folder);
	copyFileSync(ADDON, join(folder, 'brought.node'));
	const text = `process.stdout.write(String(await (async () => { "use strict";\nconst at = ${JSON.stringify(at)};\n${code}\n})())); process.exit(0)`;
	writeFileSync(join(folder, 'main.mjs'), text);
	try {
		return await new Promise((settle) => execFile(process.execPath, ['main.mjs'], { cwd: folder, timeout: LIMIT_MS }, (_, stdout, stderr) => settle(stdout || stderr)));
	} finally {
		rmSync(folder, { recursive: true });
	}
}

async function runInCell(cells, pool, code, at) {
	const told = await cells.call(pool, { op: 'eval', code: `const at = ${JSON.stringify(at)};\n${code}`, files: { 'brought.node': 0 } },
		{ buffers: [readFileSync(ADDON)], wall_ms: LIMIT_MS });
	return told.status === 'ok' ? String(told.value) : `${told.status}: ${told.type}: ${told.error}`;
}

async function withPool(kind, act) {
	const cells = new Cells();
	try {
		await act(cells, await cells.pool({ setup: { fork: kind === 'forked' }, ready: 1 }));
	} finally {
		checkEqual(await cells.end(), 0, "the supervisor's exit code");
	}
}

for (const [aim, ways] of Object.entries(attacks))
	for (const kind of ['forked', 'anew'])
		test(`${kind}: ${aim} of the host are out of reach, by ${Object.keys(ways).length} ways`, async () => {
			const prey = await Prey.make();
			try {
				await withPool(kind, async (cells, pool) => {
					for (const [way, { code, inside, leaves }] of Object.entries(ways)) {
						const told = await runInCell(cells, pool, code, prey.at);
						check(!told.includes('reached') && inside.test(told), () => `${way}, in a cell: ${told}`);
						check(!leaves || !existsSync(join(prey.at.folder, leaves)), `${way}: it left a file`);
						if (kind === 'anew')
							continue;
						const plain = await runPlain(code, prey.at);
						check(plain.trim() === 'reached', () => `${way}, the control: ${plain}`);
						check(!leaves || existsSync(join(prey.at.folder, leaves)), `${way}, the control: it left no file`);
						if (leaves)
							rmSync(join(prey.at.folder, leaves));
					}
				});
			} finally {
				prey.end();
			}
		});

await main();
