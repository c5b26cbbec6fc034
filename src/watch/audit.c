/* SPDX-License-Identifier: Apache-2.0 */
#include "watch/audit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/fdlink.h"
#include "base/str.h"

enum { BLOCK = 16384 }; /* on the stack */

/* The end of a log, and what the next line has to follow. */
struct end {
	off_t size;
	bool ended;   /* with a newline, or it is empty */
	off_t others; /* where what is not of the chain begins; size: there is none */
	char last[VT_CHAIN_HEX + 1];
};

void vt_audit_time(char ret_text[VT_CHAIN_TIME])
{
	struct timespec now;
	struct tm utc;
	char text[VT_CHAIN_TIME];

	ret_text[0] = '\0';
	if (clock_gettime(CLOCK_REALTIME, &now) < 0 || !gmtime_r(&now.tv_sec, &utc))
		return;
	if (strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc) == 0)
		return;
	(void)snprintf(ret_text, VT_CHAIN_TIME, "%.30s.%03dZ", text,
		       (int)(now.tv_nsec / 1000000) % 1000);
}

static int fail_append(const struct vt_audit_log *log, int num, struct vt_err *err)
{
	return vt_fail(err, VT_STEP_OUTPUT, num, "append to '%s'", log->name);
}

/* ---- opening ------------------------------------------------------------------------------- */

int vt_audit_take(struct vt_audit_log *log, int fd, const char *name, struct vt_err *err)
{
	struct stat st;

	*log = (struct vt_audit_log){ .fd = fd, .name = name, .wait_ns = 5 * VT_NS_PER_S };
	memcpy(log->last, vt_chain_zeros, sizeof(log->last));
	int flags = fcntl(fd, F_GETFL);
	int r = 0;

	if (flags < 0 || fstat(fd, &st) < 0)
		r = fail_append(log, errno, err);
	else if (S_ISREG(st.st_mode) && (flags & O_ACCMODE) != O_RDWR)
		r = vt_fail(err, VT_STEP_OUTPUT, EBADF,
			    "append to '%s', which is not open for reading and writing", name);
	log->is_file = r == 0 && S_ISREG(st.st_mode);
	if (r < 0)
		vt_audit_done(log);
	return r;
}

int vt_audit_open(struct vt_audit_log *log, const char *path, struct vt_err *err)
{
	int fd = open(path,
		      O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY | O_NOFOLLOW | O_NONBLOCK,
		      0600);

	*log = (struct vt_audit_log){ .fd = -1, .name = path };
	if (fd < 0)
		return vt_fail(err, VT_STEP_OUTPUT, errno, "open '%s'", path);
	int r = vt_audit_take(log, fd, path, err);

	if (r == 0 && !log->is_file) {
		r = vt_fail(err, VT_STEP_OUTPUT, EINVAL, "open '%s', which is no file", path);
		vt_audit_done(log);
	}
	return r;
}

void vt_audit_done(struct vt_audit_log *log)
{
	vt_fd_close(&log->fd);
}

bool vt_audit_is_moved(const struct vt_audit_log *log)
{
	struct stat named, held;

	/* What cannot be looked at is said by the next open, in words. */
	if (lstat(log->name, &named) < 0 || fstat(log->fd, &held) < 0)
		return true;
	return named.st_dev != held.st_dev || named.st_ino != held.st_ino;
}

/* ---- the end of a file --------------------------------------------------------------------- */

/* -EWOULDBLOCK: somebody else holds it all the time. */
static int lock(int fd, int how, int64_t wait_ns)
{
	int64_t until = vt_clock_now() + wait_ns;
	struct timespec pause = { .tv_nsec = VT_NS_PER_MS / 4 };

	while (flock(fd, how | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return -errno;
		if (vt_clock_now() >= until)
			return -EWOULDBLOCK;
		(void)nanosleep(&pause, NULL); /* a signal: tried the sooner */
		if (pause.tv_nsec < 8 * VT_NS_PER_MS)
			pause.tv_nsec *= 2;
	}
	return 0;
}

/* All of the bytes, which are there unless somebody cuts the file off. */
static int read_at(int fd, char *bytes, size_t len, off_t at)
{
	while (len) {
		ssize_t got = pread(fd, bytes, len, at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EIO;
		bytes += got;
		len -= (size_t)got;
		at += got;
	}
	return 0;
}

/* 1: a line of the chain ends there, and its hash is the last; 0: none does. */
static int look_at(int fd, off_t line_end, struct end *end)
{
	char tail[VT_CHAIN_TAIL];
	const char *prev, *hash;

	if (line_end < VT_CHAIN_TAIL)
		return 0;
	int r = read_at(fd, tail, sizeof(tail), line_end - VT_CHAIN_TAIL);

	if (r < 0 || !vt_chain_is_tail(tail, &prev, &hash))
		return r;
	memcpy(end->last, hash, VT_CHAIN_HEX);
	end->others = line_end < end->size ? line_end + 1 : end->size;
	return 1;
}

/* Looks for the last line of the chain, from the end backwards. The same results. */
static int look_back(int fd, struct end *end)
{
	char block[BLOCK];
	off_t at = end->size;
	int found = end->ended ? 0 : look_at(fd, end->size, end);

	while (!found && at > 0 && end->size - at < (off_t)VT_AUDIT_SCAN) {
		size_t len = at < BLOCK ? (size_t)at : BLOCK;

		at -= (off_t)len;
		found = read_at(fd, block, len, at);
		for (size_t left = len; !found && left;) {
			const char *newline = memrchr(block, '\n', left);

			left = newline ? (size_t)(newline - block) : 0;
			if (newline)
				found = look_at(fd, at + (off_t)left, end);
		}
	}
	return found;
}

static int find_end(int fd, struct end *ret_end)
{
	struct end end = { .ended = true };
	struct stat st;
	char byte;

	if (fstat(fd, &st) < 0)
		return -errno;
	end.size = end.others = st.st_size;
	memcpy(end.last, vt_chain_zeros, sizeof(end.last));
	if (end.size) {
		int r = read_at(fd, &byte, 1, end.size - 1);

		end.ended = r == 0 && byte == '\n';
		if (r == 0)
			r = look_back(fd, &end);
		if (r < 0)
			return r;
	}
	*ret_end = end;
	return 0;
}

/* ---- appending ----------------------------------------------------------------------------- */

/* The line that tells of what is behind the last one of the chain. */
static int add_gap(int fd, struct end *end, struct vt_str *out)
{
	char block[BLOCK], time[VT_CHAIN_TIME];
	struct vt_chain walk;

	vt_chain_begin(&walk, NULL);
	for (off_t at = end->others; at < end->size;) {
		size_t len = end->size - at < BLOCK ? (size_t)(end->size - at) : BLOCK;
		int r = read_at(fd, block, len, at);

		if (r < 0)
			return r;
		vt_chain_walk(&walk, block, len);
		at += (off_t)len;
	}
	vt_chain_end(&walk);
	vt_audit_time(time);
	return vt_chain_add_gap(out, &walk, time, end->last, end->last);
}

/* In one write: a part of it that a crash leaves is at the end of the file, and found there. */
static int write_once(int fd, const struct vt_str *text)
{
	ssize_t written;

	do
		written = write(fd, text->text, text->len);
	while (written < 0 && errno == EINTR);
	if (written < 0)
		return -errno;
	return (size_t)written == text->len ? 0 : -ENOSPC;
}

static int append_locked(const struct vt_audit_log *log, const char *json, size_t len,
			 struct vt_str *out)
{
	struct end end;
	int r = find_end(log->fd, &end);

	if (r < 0)
		return r;
	if (!end.ended)
		vt_str_add(out, "\n");
	if (end.others < end.size)
		r = add_gap(log->fd, &end, out);
	if (r == 0)
		r = vt_chain_add(out, json, len, end.last, end.last);
	/* A descriptor that was opened elsewhere may not append by itself. */
	if (r == 0 && lseek(log->fd, 0, SEEK_END) < 0)
		r = -errno;
	return r < 0 ? r : write_once(log->fd, out);
}

static int lock_log(const struct vt_audit_log *log, struct vt_err *err)
{
	int r = lock(log->fd, LOCK_EX, log->wait_ns);

	if (r == -EWOULDBLOCK)
		return vt_fail(err, VT_STEP_OUTPUT, -r,
			       "append to '%s', which another process keeps locked", log->name);
	return r < 0 ? vt_fail(err, VT_STEP_OUTPUT, -r, "lock '%s'", log->name) : 0;
}

static void unlock_log(const struct vt_audit_log *log)
{
	(void)flock(log->fd, LOCK_UN); /* does not fail for a lock that is held */
}

int vt_audit_try(const struct vt_audit_log *log, struct vt_err *err)
{
	int r = log->is_file ? lock_log(log, err) : 0;

	if (r == 0 && log->is_file)
		unlock_log(log);
	return r;
}

static int append_to_file(const struct vt_audit_log *log, const char *json, size_t len,
			  struct vt_str *out, struct vt_err *err)
{
	int r = lock_log(log, err);

	if (r < 0)
		return r;
	r = append_locked(log, json, len, out);
	unlock_log(log);
	return r < 0 ? fail_append(log, -r, err) : 0;
}

static int append_to_stream(struct vt_audit_log *log, const char *json, size_t len,
			    struct vt_str *out, struct vt_err *err)
{
	char hash[VT_CHAIN_HEX + 1];
	int r = vt_chain_add(out, json, len, log->last, hash);

	if (r == 0)
		r = write_once(log->fd, out);
	if (r < 0)
		return fail_append(log, -r, err);
	memcpy(log->last, hash, sizeof(log->last));
	return 0;
}

int vt_audit_append(struct vt_audit_log *log, const char *json, size_t len, struct vt_err *err)
{
	struct vt_str out;

	if (len > VT_AUDIT_LINE)
		return vt_fail(err, VT_STEP_OUTPUT, E2BIG, "append a line of %zu MB to '%s'",
			       len >> 20, log->name);
	vt_str_init(&out);
	int r = log->is_file ? append_to_file(log, json, len, &out, err)
			     : append_to_stream(log, json, len, &out, err);

	vt_str_done(&out);
	return r;
}

/* ---- verifying ----------------------------------------------------------------------------- */

/* How much of the file there is while nobody appends. What has no length is read to its end. */
static int measure(int fd, const char *path, uint64_t *ret_len, struct vt_err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return vt_fail(err, VT_STEP_OUTPUT, errno, "read '%s'", path);
	if (S_ISFIFO(st.st_mode) && !vt_fdlink_is(path))
		return vt_fail(err, VT_STEP_OUTPUT, EINVAL,
			       "read '%s', which is a pipe that anybody may have put there: name a "
			       "file, or /dev/stdin and `< PIPE`",
			       path);
	int r = lock(fd, LOCK_SH, 5 * VT_NS_PER_S);

	/* Where there are no locks nobody appends either. */
	if (r == -EWOULDBLOCK)
		return vt_fail(err, VT_STEP_OUTPUT, -r,
			       "read '%s', which another process keeps locked", path);
	/* How long it is while it is locked. */
	if (fstat(fd, &st) < 0)
		return vt_fail(err, VT_STEP_OUTPUT, errno, "read '%s'", path);
	(void)flock(fd, LOCK_UN); /* if it was taken */
	*ret_len = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : UINT64_MAX;
	return 0;
}

int vt_audit_verify(const char *path, const char *expected, struct vt_chain *ret_chain,
		    struct vt_err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char block[BLOCK];
	uint64_t left = 0;

	if (fd < 0 || fcntl(fd, F_SETFL, 0) < 0)
		return vt_fail(err, VT_STEP_OUTPUT, errno, "read '%s'", path);
	int r = measure(fd, path, &left, err);

	vt_chain_begin(ret_chain, expected);
	while (r == 0 && left && !ret_chain->fault) {
		ssize_t got = read(fd, block, left < BLOCK ? (size_t)left : BLOCK);

		if (got < 0 && errno != EINTR)
			r = vt_fail(err, VT_STEP_OUTPUT, errno, "read '%s'", path);
		if (got == 0)
			break;
		vt_chain_walk(ret_chain, block, got > 0 ? (size_t)got : 0);
		left -= got > 0 ? (uint64_t)got : 0;
	}
	vt_chain_end(ret_chain);
	return r;
}
