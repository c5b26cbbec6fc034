/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/fdlink.h"
#include "base/str.h"
#include "base/utf8.h"

#define READ_SIZE  ((size_t)16 << 10)
#define NAME_SHOWN 200
#define TEXT_SHOWN 220
/* A program that writes a policy into a pipe is done by then; who never writes holds nobody up. */
#define PIPE_PATIENCE (10 * VT_NS_PER_S)

json_t *vt_json_text(const char *bytes, size_t len)
{
	struct vt_str text;
	size_t kept = 0; /* what comes before is in text already */

	vt_str_init(&text);
	for (size_t at = 0; at < len;) {
		struct vt_utf8 next = vt_utf8_next(bytes + at, len - at);

		if (!next.valid) {
			vt_str_addn(&text, bytes + kept, at - kept);
			vt_str_add(&text, VT_UTF8_REPLACEMENT);
			kept = at + next.len;
		}
		at += next.len;
	}
	/* With nothing replaced the caller's bytes serve as they are. */
	if (kept)
		vt_str_addn(&text, bytes + kept, len - kept);
	json_t *string = NULL;

	if (vt_str_ok(&text))
		string = kept ? json_stringn_nocheck(text.text, text.len)
			      : json_stringn_nocheck(len ? bytes : "", len);
	vt_str_done(&text);
	return string;
}

json_t *vt_json_string(const char *text)
{
	return text ? vt_json_text(text, strlen(text)) : json_null();
}

json_t *vt_json_append(json_t *list, json_t *item)
{
	if (list && item && json_array_append_new(list, item) == 0)
		return list;
	if (!list)
		json_decref(item);
	json_decref(list);
	return NULL;
}

static int fail_named(struct vt_err *err, int num, const char *name, const char *what)
{
	char shown[NAME_SHOWN];

	return vt_fail(err, VT_STEP_POLICY, num, "%s: %s",
		       vt_utf8_show_text(shown, sizeof(shown), name, strlen(name)), what);
}

static int fail_too_big(struct vt_err *err, const char *name)
{
	return fail_named(err, EFBIG, name, "too big: more than 4 MB of JSON");
}

bool vt_json_is_within(const char *text, size_t len, size_t values)
{
	size_t count = 1;
	bool quoted = false;

	for (size_t i = 0; i < len && count <= values; i++) {
		if (text[i] == '"')
			quoted = !quoted;
		else if (quoted)
			i += text[i] == '\\';
		else
			count += text[i] == ',' || text[i] == '[' || text[i] == '{';
	}
	return count <= values;
}

/* jansson's words where they help, and ours where they speak of its own flags. */
static const char *syntax_text(const json_error_t *error)
{
	switch (json_error_code(error)) {
	case json_error_stack_overflow:
		return "nested too deeply";
	case json_error_end_of_input_expected:
		return "there is more text after the end of the value";
	case json_error_null_character:
	case json_error_null_byte_in_key:
		return "the escape \\u0000 is not allowed";
	case json_error_invalid_utf8:
		return "this is not UTF-8";
	case json_error_numeric_overflow:
		return "the number is too big";
	case json_error_premature_end_of_input:
		return "the text ends too early";
	default:
		return error->text;
	}
}

/* Whether a text is meant to be JSON, by how it begins: a table of TOML is [so]. */
static bool begins_as_json(const char *text, size_t len)
{
	size_t at = 0;

	while (at < len && strchr(" \t\r\n", text[at]))
		at++;
	if (at < len && text[at] == '[')
		return at + 1 >= len || !isalpha((unsigned char)text[at + 1]);
	return at < len && text[at] == '{';
}

/* Whether the bracket that was read last, up to there, has a comma before it. */
static bool is_behind_comma(const char *text, size_t len, int end)
{
	size_t at = end > 0 && (size_t)end <= len ? (size_t)end - 1 : 0;

	if (!at || !strchr("}]", text[at]))
		return false;
	while (at > 0 && strchr(" \t\r\n", text[at - 1]))
		at--;
	return at > 0 && text[at - 1] == ',';
}

/* What helps who wrote something else than JSON, which jansson has only a strange token to say of.
 */
static const char *advice(const json_error_t *error, const char *text, size_t len)
{
	if (json_error_code(error) != json_error_invalid_syntax)
		return "";
	if (strstr(error->text, "near '/'"))
		return "; JSON has no comments";
	if (is_behind_comma(text, len, error->position))
		return "; JSON has no comma after the last item";
	if (!begins_as_json(text, len))
		return "; want a JSON object: {...}";
	return strstr(error->text, "near '#'") ? "; JSON has no comments" : "";
}

static int fail_syntax(struct vt_err *err, const char *name, int line, int column, const char *what)
{
	char shown_name[NAME_SHOWN], shown[TEXT_SHOWN];

	return vt_fail(err, VT_STEP_POLICY, EINVAL, "%s:%d:%d: %s",
		       vt_utf8_show_text(shown_name, sizeof(shown_name), name, strlen(name)), line,
		       column, vt_utf8_show_text(shown, sizeof(shown), what, strlen(what)));
}

/* jansson takes a NUL byte for a strange token; it deserves its name. */
static int fail_nul(struct vt_err *err, const char *name, const char *text, const char *nul)
{
	int line = 1;
	const char *start = text;

	for (const char *at = text; at < nul; at++) {
		if (*at == '\n') {
			line++;
			start = at + 1;
		}
	}
	return fail_syntax(err, name, line, (int)(nul - start) + 1, "there is a NUL byte");
}

int vt_json_load_text(const char *text, size_t len, const char *name, json_t **ret_root,
		      struct vt_err *err)
{
	if (len > VT_JSON_MAX_BYTES)
		return fail_too_big(err, name);
	const char *nul = len ? memchr(text, '\0', len) : NULL;

	if (nul)
		return fail_nul(err, name, text, nul);
	/* It cannot be seen in an editor, nor in jansson's words. */
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		return fail_syntax(err, name, 1, 1,
				   "the text begins with a byte order mark; save it without one");
	json_error_t error;
	json_t *root = json_loadb(len ? text : "", len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY,
				  &error);

	if (root) {
		*ret_root = root;
		return 0;
	}
	/* Where jansson has no memory, it mostly fails without a word of where. */
	if (json_error_code(&error) == json_error_out_of_memory || error.line < 0)
		return vt_fail(err, VT_STEP_POLICY, ENOMEM, "out of memory");
	char what[TEXT_SHOWN];

	(void)snprintf(what, sizeof(what), "%s%s", syntax_text(&error),
		       advice(&error, text, len)); /* jansson's have 160 at most */
	/* jansson counts columns from 1, but says 0 where it read nothing. */
	return fail_syntax(err, name, error.line, error.column ? error.column : 1, what);
}

/*
 * Waits for something to read, or for the end. Of a named pipe that nobody has opened for writing
 * yet, a read would say that it is at its end; poll() waits for a writer. A writer that goes on and
 * on has no more time than one that writes nothing.
 */
static int await(int fd, int64_t until)
{
	struct pollfd ready = { .fd = fd, .events = POLLIN };

	for (;;) {
		int64_t left = until - vt_clock_now();
		int r = poll(&ready, 1, left > 0 ? (int)(left / VT_NS_PER_MS) + 1 : 0);

		if (left <= 0)
			return -ETIMEDOUT;
		if (r > 0)
			return 0;
		if (r < 0 && errno != EINTR)
			return -errno;
	}
}

/*
 * Takes in all of fd, which does not block, and no more than one byte beyond the limit, by which
 * the caller sees it.
 */
static int read_all(int fd, bool pipe, struct vt_str *text)
{
	const int64_t until = vt_clock_now() + PIPE_PATIENCE;
	char chunk[READ_SIZE];

	while (text->len <= VT_JSON_MAX_BYTES) {
		size_t room = VT_JSON_MAX_BYTES + 1 - text->len;
		int r = pipe ? await(fd, until) : 0;

		if (r < 0)
			return r;
		ssize_t got = read(fd, chunk, room < sizeof(chunk) ? room : sizeof(chunk));

		if (got < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		vt_str_addn(text, chunk, (size_t)got);
		if (!vt_str_ok(text))
			return -ENOMEM;
	}
	return 0;
}

static int fail_reading(struct vt_err *err, int num, const char *path)
{
	if (num == ETIMEDOUT)
		return fail_named(err, num, path,
				  "is a pipe, and what is written to it did not come to an end "
				  "within 10 s");
	return fail_named(err, num, path, strerror(num));
}

static int fail_kind(struct vt_err *err, mode_t mode, const char *path)
{
	if (S_ISDIR(mode))
		return fail_named(err, EISDIR, path, "is a folder, not a file");
	return fail_named(err, EINVAL, path,
			  S_ISFIFO(mode) ? "is a pipe, which anybody may have put there: name a "
					   "file, or /dev/stdin and `< PIPE`"
					 : "is not a file");
}

static int read_named(const char *path, bool pipes, struct vt_str *text, struct vt_err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0)
		return fail_named(err, errno, path, strerror(errno));
	struct stat info;

	if (fstat(fd, &info) < 0)
		return fail_named(err, errno, path, strerror(errno));
	/* A device may have no end, and reading a terminal would hang. */
	if (!S_ISREG(info.st_mode) && !(pipes && S_ISFIFO(info.st_mode) && vt_fdlink_is(path)))
		return fail_kind(err, info.st_mode, path);
	int status = read_all(fd, S_ISFIFO(info.st_mode), text);

	return status < 0 ? fail_reading(err, -status, path) : 0;
}

int vt_json_read_file(const char *path, struct vt_str *text, struct vt_err *err)
{
	return read_named(path, true, text, err);
}

int vt_json_read_plain(const char *path, struct vt_str *text, struct vt_err *err)
{
	return read_named(path, false, text, err);
}

static int load_named(const char *path, bool pipes, json_t **ret_root, struct vt_err *err)
{
	struct vt_str text;

	vt_str_init(&text);
	int status = read_named(path, pipes, &text, err);

	if (status == 0)
		status = vt_json_load_text(text.text, text.len, path, ret_root, err);
	vt_str_done(&text);
	return status;
}

int vt_json_load_file(const char *path, json_t **ret_root, struct vt_err *err)
{
	return load_named(path, true, ret_root, err);
}

int vt_json_load_plain(const char *path, json_t **ret_root, struct vt_err *err)
{
	return load_named(path, false, ret_root, err);
}
