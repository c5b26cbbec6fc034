// SPDX-License-Identifier: Apache-2.0
/*
 * What model-written code may try from inside a cell: each the body of an async function, which returns 'reached' where it
 * got what it went for. `at` says where that is: {folder, secret, module, port, udp, path, abstract, pid, variable, hash}; an addon lies in
 * the working directory as brought.node.
 * inside: how it fails in a cell. leaves: a file in at.folder that it writes. escape_test.mjs runs each in cells, and in a
 * plain Node, where it must succeed.
 */

const NOTHING_THERE = /ENOENT|EXDEV|ENOSYS|EACCES|EPERM|no such file|permission denied|cannot open|ERR_MODULE_NOT_FOUND|Cannot find module|UVWASI_EACCES|UVWASI_ENOENT/i;
const NO_NETWORK = /EPERM|EACCES|ENETUNREACH|EAFNOSUPPORT|ECONNREFUSED|EADDRNOTAVAIL|ENOSYS|EINVAL|ENOENT|operation not permitted|permission denied|address not available/i;
const NO_PROCESS = /ESRCH|EPERM|EACCES|ENOENT/;

const read = 'const { readFileSync } = await import("node:fs"); return readFileSync(at.secret, "utf8");';
const callAddon = `const host = { exports: {} };
	process.dlopen(host, process.cwd() + '/brought.node');
	const { syscall } = host.exports;
	const text = (word) => Buffer.from(word + '\\0');
	const number = (names) => names[process.arch === 'arm64' ? 1 : 0];
	const say = (got) => got >= 0 ? 'reached' : 'errno ' + -got;`;
const DENIED = /^errno (1|2|3|13|38|97)$/; // EPERM ENOENT ESRCH EACCES ENOSYS EAFNOSUPPORT

export const attacks = {
	files: {
		'fs.readFileSync': { code: read, inside: NOTHING_THERE },
		'fs.promises': { code: 'return await (await import("node:fs/promises")).readFile(at.secret, "utf8")', inside: NOTHING_THERE },
		'a stream': { code: 'let all = ""; for await (const part of (await import("node:fs")).createReadStream(at.secret)) all += part; return all', inside: NOTHING_THERE },
		'import() of file:': { code: 'return (await import("file://" + at.module)).default', inside: NOTHING_THERE },
		'require()': { code: 'return (await import("node:module")).createRequire("/tmp/")(at.module.replace(".mjs", ".cjs"))', inside: NOTHING_THERE },
		"process.binding('fs')": {
			code: `const how = {};
				const more = parseInt(process.versions.node) < 20 ? [undefined, how] : [];
				const fd = process.binding('fs').open(at.secret, 0, 0o666, ...more);
				if (how.code) throw new Error(how.code);
				const into = Buffer.alloc(20);
				return into.toString('latin1', 0, (await import('node:fs')).readSync(fd, into));`,
			inside: NOTHING_THERE,
		},
		'a symbolic link': { code: 'const fs = await import("node:fs"); fs.symlinkSync(at.secret, "link"); return fs.readFileSync("link", "utf8")', inside: NOTHING_THERE },
		'a hard link': { code: 'const fs = await import("node:fs"); fs.linkSync(at.secret, "hard"); return fs.readFileSync("hard", "utf8")', inside: NOTHING_THERE },
		'/proc/self/root': { code: 'return (await import("node:fs")).readFileSync("/proc/self/root" + at.secret, "utf8")', inside: NOTHING_THERE },
		'the way up from the working directory': { code: 'return (await import("node:fs")).readFileSync("../../../../../.." + at.secret, "utf8")', inside: NOTHING_THERE },
		'fs.cpSync': { code: 'const fs = await import("node:fs"); fs.cpSync(at.secret, "copy"); return fs.readFileSync("copy", "utf8")', inside: NOTHING_THERE },
		'listing its folder': { code: 'return (await import("node:fs")).readdirSync(at.folder).includes("secret") ? "reached" : "no"', inside: NOTHING_THERE },
		'watching its folder': { code: '(await import("node:fs")).watch(at.folder).close(); return "reached"', inside: NOTHING_THERE },
		'a child process': { code: 'const { stdout, stderr } = (await import("node:child_process")).spawnSync("/bin/cat", [at.secret]); return `${stdout}${stderr}`', inside: NOTHING_THERE },
		'a child that is a Node': {
			code: 'const { stdout, stderr } = (await import("node:child_process")).spawnSync(process.execPath, ["-p", `require("fs").readFileSync(${JSON.stringify(at.secret)}, "utf8")`]); return `${stdout}`.trim() || `${stderr}`',
			inside: NOTHING_THERE,
		},
		'a worker thread': {
			code: `const { Worker, SHARE_ENV } = await import('node:worker_threads');
				const worker = new Worker('require("worker_threads").parentPort.postMessage(require("fs").readFileSync(require("worker_threads").workerData, "utf8"))', { eval: true, workerData: at.secret, env: SHARE_ENV });
				return await new Promise((settle, reject) => worker.on('message', settle).on('error', reject));`,
			inside: NOTHING_THERE,
		},
		'the inspector, from within': {
			code: `const { Session } = await import('node:inspector');
				const session = new Session();
				session.connect();
				const expression = 'require("fs").readFileSync(' + JSON.stringify(at.secret) + ', "utf8")';
				const told = await new Promise((settle, reject) => session.post('Runtime.evaluate', { expression, includeCommandLineAPI: true }, (error, value) => error ? reject(error) : settle(value)));
				return told.result.value ?? told.exceptionDetails?.exception?.description;`,
			inside: NOTHING_THERE,
		},
		'--allow-natives-syntax': {
			code: `(await import('node:v8')).setFlagsFromString('--allow-natives-syntax');
				const native = new Function('return %IsBeingInterpreted() !== undefined');
				if (!native()) return 'no native call was made';
				${read}`,
			inside: NOTHING_THERE,
		},
		WASI: {
			code: `const { WASI } = await import('node:wasi');
				const wasi = new WASI({ version: 'preview1', preopens: { '/': at.folder } });
				const bytes = Buffer.from('0061736d010000000503010001070a01066d656d6f72790200', 'hex'); // a memory alone
				const instance = new WebAssembly.Instance(new WebAssembly.Module(bytes));
				wasi.initialize(instance);
				const { memory } = instance.exports;
				Buffer.from(memory.buffer).write('secret', 64);
				const errno = wasi.wasiImport.path_open(3, 0, 64, 6, 0, 2n, 0n, 0, 0);
				return errno ? 'errno ' + errno : 'reached';`,
			inside: NOTHING_THERE,
		},
		'v8.writeHeapSnapshot': { code: '(await import("node:v8")).writeHeapSnapshot(at.folder + "/heap"); return "reached"', inside: NOTHING_THERE, leaves: 'heap' },
		'process.report': { code: 'process.report.directory = at.folder; process.report.writeReport("report"); if (!(await import("node:fs")).existsSync(at.folder + "/report")) throw new Error("ENOENT"); return "reached"', inside: NOTHING_THERE, leaves: 'report' },
		'writing beside it': { code: '(await import("node:fs")).writeFileSync(at.folder + "/written", "x"); return "reached"', inside: NOTHING_THERE, leaves: 'written' },
	},

	network: {
		net: { code: 'const net = await import("node:net"); return await new Promise((settle, reject) => net.connect(at.port, "127.0.0.1").on("connect", () => settle("reached")).on("error", reject))', inside: NO_NETWORK },
		fetch: { code: 'try { return await (await fetch(`http://127.0.0.1:${at.port}`)).text() } catch (error) { throw error.cause ?? error }', inside: NO_NETWORK },
		'node:http': { code: 'const http = await import("node:http"); return await new Promise((settle, reject) => http.get(`http://127.0.0.1:${at.port}`, () => settle("reached")).on("error", reject))', inside: NO_NETWORK },
		http2: { code: 'const http2 = await import("node:http2"); return await new Promise((settle, reject) => { const session = http2.connect(`http://127.0.0.1:${at.port}`, () => settle("reached")); session.on("error", reject) })', inside: NO_NETWORK },
		dgram: {
			code: `const socket = (await import('node:dgram')).createSocket('udp4');
				return await new Promise((settle, reject) => {
					socket.on('message', () => settle('reached')).on('error', reject);
					socket.send('hello', at.udp, '127.0.0.1', (error) => error && reject(error));
				});`,
			inside: NO_NETWORK,
		},
		'dns, by a resolver of its own': {
			code: `const { Resolver } = (await import('node:dns')).promises;
				const resolver = new Resolver({ timeout: 500, tries: 1 });
				resolver.setServers(['127.0.0.1:' + at.udp]);
				try { await resolver.resolve4('vitro.invalid') } catch (error) { if (error.code === 'ENOTFOUND') return 'reached'; throw error }`,
			inside: /ECONNREFUSED|ETIMEOUT|ESERVFAIL|EREFUSED|EAI_|ENOTIMP/,
		},
		"process.binding('tcp_wrap')": {
			code: `const { TCP, TCPConnectWrap, constants } = process.binding('tcp_wrap');
				const handle = new TCP(constants.SOCKET), request = new TCPConnectWrap();
				return await new Promise((settle, reject) => {
					const keep = setTimeout(() => reject(new Error('EPERM: it does not come')), 3000);
					request.oncomplete = (status) => status ? reject(new Error('ECONNREFUSED ' + status)) : settle(clearTimeout(keep) ?? 'reached');
					const status = handle.connect(request, '127.0.0.1', at.port);
					if (status) reject(new Error('EPERM ' + status));
				});`,
			inside: NO_NETWORK,
		},
		'a server': { code: 'const net = await import("node:net"); return await new Promise((settle, reject) => net.createServer().listen(0, "127.0.0.1", () => settle("reached")).on("error", reject))', inside: NO_NETWORK },
		'the inspector, to be debugged': { code: 'const inspector = await import("node:inspector"); inspector.open(0, "127.0.0.1"); if (!inspector.url()) throw new Error("EPERM: no address"); return "reached"', inside: NO_NETWORK },
		'an abstract socket': { code: 'const net = await import("node:net"); return await new Promise((settle, reject) => net.connect("\\0" + at.abstract).on("connect", () => settle("reached")).on("error", reject))', inside: NO_NETWORK },
		'a socket with a path': { code: 'const net = await import("node:net"); return await new Promise((settle, reject) => net.connect(at.path).on("connect", () => settle("reached")).on("error", reject))', inside: NO_NETWORK },
		'a child process': { code: 'const { stdout, stderr } = (await import("node:child_process")).spawnSync(process.execPath, ["-e", `require("net").connect(${at.port}, "127.0.0.1").on("connect", () => { console.log("reached"); process.exit() })`]); return `${stdout}`.trim() || `${stderr}`', inside: NO_NETWORK },
		'a worker thread': {
			code: `const { Worker } = await import('node:worker_threads');
				const worker = new Worker('const {parentPort: p, workerData: d} = require("worker_threads"); require("net").connect(d, "127.0.0.1").on("connect", () => p.postMessage("reached")).on("error", (e) => p.postMessage(e.code))', { eval: true, workerData: at.port });
				return await new Promise((settle, reject) => worker.on('message', settle).on('error', reject));`,
			inside: NO_NETWORK,
		},
	},

	processes: {
		'a signal': { code: 'process.kill(at.pid, 0); return "reached"', inside: NO_PROCESS },
		'the end of it': { code: 'process.kill(at.pid, "SIGCONT"); return "reached"', inside: NO_PROCESS },
		"process.binding('process_wrap')": { code: 'const errno = process._kill(at.pid, 0); if (errno) throw new Error(errno === -3 ? "ESRCH" : "EPERM"); return "reached"', inside: NO_PROCESS },
		'its command line': { code: 'return (await import("node:fs")).readFileSync(`/proc/${at.pid}/cmdline`, "latin1").includes("sleep") ? "reached" : "ENOENT: another"', inside: NO_PROCESS },
		'its environment': { code: 'return (await import("node:fs")).readFileSync(`/proc/${at.pid}/environ`, "latin1").length ? "reached" : "no"', inside: NO_PROCESS },
		'its memory': { code: 'const fs = await import("node:fs"); fs.closeSync(fs.openSync(`/proc/${at.pid}/mem`, "r")); return "reached"', inside: NO_PROCESS },
		'its priority': { code: 'const os = await import("node:os"); os.setPriority(at.pid, os.getPriority(at.pid)); return "reached"', inside: NO_PROCESS },
		'a child that signals': { code: 'const { status, stderr } = (await import("node:child_process")).spawnSync("/bin/sh", ["-c", `kill -0 ${at.pid}`]); return status === 0 ? "reached" : `ESRCH ${stderr}`', inside: NO_PROCESS },
	},

	environment: {
		'process.env': { code: 'return process.env[at.variable] ? "reached" : "none"', inside: /none/ },
		'/proc/self/environ': { code: 'return (await import("node:fs")).readFileSync("/proc/self/environ", "latin1").includes(at.variable) ? "reached" : "none"', inside: /none|ENOENT|EACCES/ },
		'of its parents': {
			code: `const fs = await import('node:fs');
				for (const pid of fs.readdirSync('/proc').filter((name) => /^\\d+$/.test(name)))
					try { if (fs.readFileSync('/proc/' + pid + '/environ', 'latin1').includes(at.variable)) return 'reached' } catch {}
				return 'none';`,
			inside: /none|ENOENT|EACCES/,
		},
		'process.report': { code: 'return JSON.stringify(process.report.getReport()).includes(at.variable) ? "reached" : "none"', inside: /none/ },
		'a child process': { code: 'return (await import("node:child_process")).execFileSync("/usr/bin/env").includes(at.variable) ? "reached" : "none"', inside: /none/ },
		'a worker thread': {
			code: `const { Worker } = await import('node:worker_threads');
				const worker = new Worker('require("worker_threads").parentPort.postMessage(JSON.stringify(process.env))', { eval: true });
				return (await new Promise((settle, reject) => worker.on('message', settle).on('error', reject))).includes(at.variable) ? 'reached' : 'none';`,
			inside: /none/,
		},
		/* It knows how the value begins, and not the value. */
		'what is left in memory': {
			code: `const fs = await import('node:fs');
				const { createHash } = await import('node:crypto');
				const memory = fs.openSync('/proc/self/mem', 'r');
				const begin = ['vitro', 'hidden', ''].join('-');
				let total = 0;
				for (const line of fs.readFileSync('/proc/self/maps', 'latin1').split('\\n')) {
					const match = /^([0-9a-f]+)-([0-9a-f]+) r/.exec(line);
					if (!match || line.includes('[v')) continue;
					const from = BigInt('0x' + match[1]), size = Number(BigInt('0x' + match[2]) - from);
					for (let done = 0; done < Math.min(size, 64 << 20);) {
						const chunk = Buffer.alloc(Math.min(1 << 20, size - done));
						try { fs.readSync(memory, chunk, 0, chunk.length, from + BigInt(done)) } catch { break }
						total += chunk.length;
						for (let found = chunk.indexOf(begin); found >= 0; found = chunk.indexOf(begin, found + 1))
							if (createHash('sha256').update(chunk.subarray(found, found + 45)).digest('hex') === at.hash) return 'reached';
						done += chunk.length;
					}
				}
				return total > 1 << 20 ? 'none' : 'too little was read: ' + total;`,
			inside: /none|EACCES|EPERM|ENOENT/,
		},
	},

	/* With code of its own, which it brings, and which makes any system call. */
	addons: {
		'a file': { code: `${callAddon} return say(syscall(number([257, 56]), -100, text(at.secret), 0, 0));`, inside: DENIED },
		'a socket': { code: `${callAddon} return say(syscall(number([41, 198]), 2, 1, 0));`, inside: DENIED },
		'a socket of netlink': { code: `${callAddon} return say(syscall(number([41, 198]), 16, 3, 0));`, inside: DENIED },
		'a signal': { code: `${callAddon} return say(syscall(number([62, 129]), at.pid, 0));`, inside: DENIED },
		'a hold on a process': { code: `${callAddon} const held = syscall(434, at.pid, 0); return say(held < 0 ? held : syscall(424, held, 0, 0, 0));`, inside: DENIED },
		'keys': { code: `${callAddon} return say(syscall(number([250, 219]), 0, -3, 0));`, inside: DENIED },
		'a program that is another user\'s': {
			code: `${callAddon} const fs = await import('node:fs'); fs.writeFileSync('more', ''); return say(syscall(number([91, 52]), fs.openSync('more'), 0o4755));`,
			inside: DENIED,
		},
	},
};
