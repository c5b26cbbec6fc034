// SPDX-License-Identifier: Apache-2.0
/*
 * What a workspace does to its files. The text of this file is sent to a cell, and is the beginning of an async
 * function's body there: the host opens no file in a folder that cells write to, in which any name may be a link.
 */

const fs = await import('node:fs');
const path = await import('node:path');
const { O_CREAT, O_NONBLOCK, O_RDONLY, O_WRONLY } = fs.constants;

const acts = {
	/** The bytes of a file. */
	read: (file) => withRegular(file, O_RDONLY, (fd) => fs.readFileSync(fd)),

	/** Makes a file of what is on standard input, and the folders around it. */
	write(file) {
		fs.mkdirSync(path.dirname(path.resolve(file)), { recursive: true });
		withRegular(file, O_WRONLY | O_CREAT, (fd) => {
			fs.ftruncateSync(fd);
			fs.writeFileSync(fd, fs.readFileSync(0));
		});
	},

	stat(file) {
		const found = fs.statSync(file);
		return { type: nameType(found), size: found.size };
	},

	list: (folder) => fs.readdirSync(folder, { withFileTypes: true }).map((entry) => ({ name: entry.name, type: nameType(entry) })),

	remove(file) {
		if (fs.lstatSync(file).isDirectory())
			throw Object.assign(new Error(`'${file}' is a folder`), { code: 'EISDIR' });
		fs.unlinkSync(file);
	},
};

function nameType(entry) {
	return entry.isFile() ? 'file' : entry.isDirectory() ? 'directory' : entry.isSymbolicLink() ? 'symlink' : 'other';
}

/** Nothing waits for the other end of a pipe. */
function withRegular(file, flags, act) {
	const fd = fs.openSync(file, flags | O_NONBLOCK, 0o666);
	try {
		if (!fs.fstatSync(fd).isFile())
			throw Object.assign(new Error(`'${file}' is no regular file`), { code: fs.fstatSync(fd).isDirectory() ? 'EISDIR' : 'EINVAL' });
		return act(fd);
	} finally {
		fs.closeSync(fd);
	}
}

function attempt(act, file) {
	try {
		return { value: acts[act](file) };
	} catch (error) {
		return { code: String(error.code), message: error.message };
	}
}
