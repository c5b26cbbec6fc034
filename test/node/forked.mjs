// SPDX-License-Identifier: Apache-2.0
/*
 * What a Node must be able to do after a fork: run by fork_test.mjs in a Node with the addon preloaded, as
 * `node forked.mjs ADDON ROUNDS NAME | PART/PARTS`. Each work is done in a fork of its own, and the last line is a JSON object.
 */
import fs from 'node:fs';
import { works } from './works.mjs';

const [, , addonPath, rounds, wanted] = process.argv;
const [part, parts] = wanted.split('/').map(Number);
const LIMIT_MS = 20_000;
const host = { exports: {} };
process.dlopen(host, addonPath);
const addon = host.exports;
addon.enlarge(); // as the zygote does
const names = Object.keys(works).filter((name, index) => (parts ? index % parts === part : name === wanted));
const failed = {};
const times = [];

/** Beyond the last timer Node waits for threads that a fork does not have; vitro's own occupants see to that. */
function work(name) {
	setInterval(() => {}, 1000);
	works[name]().then(() => addon.exit(0), (error) => {
		fs.writeSync(2, `# ${name}: ${error?.stack ?? error}\n`);
		addon.exit(7);
	});
}

function main() {
	for (let round = 0; round < Number(rounds); round++)
		for (const name of names) {
			const start = process.hrtime.bigint();
			const pid = addon.sprout();
			if (!pid)
				return work(name);
			times.push(Number(process.hrtime.bigint() - start) / 1e3);
			const status = addon.reap(pid, LIMIT_MS);
			if (status)
				failed[name] = [...(failed[name] ?? []), status];
		}
	times.sort((a, b) => a - b);
	fs.writeSync(1, `\n${JSON.stringify({ version: process.version, forks: times.length, fork_us: times[times.length >> 1], rss: process.memoryUsage().rss, failed })}\n`);
	addon.exit(0);
}

setImmediate(main);
