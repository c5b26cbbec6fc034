/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client's file system that answers a number of times, and then never again: whatever of a pool
 * is asked of it, and however often, nobody but that client waits. argv: vitro.
 */
#include "by_hand.h"

#include <linux/fuse.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/uio.h>

static int echo(vitro_task *task)
{
	return vitro_task_return(task, vitro_task_arguments(task, NULL));
}

static const struct vitro_tool tools[] = {
	{ .name = "echo", .function = echo },
	{ 0 },
};

/* ---- the file system --------------------------------------------------------------------------
 */

enum { ROOT = FUSE_ROOT_ID, FOLDER, FILE_NODE };

/* Shared with whoever answers. */
static struct told {
	int answers; /* that it gives */
	int asked;   /* of what has an answer */
	int silent;  /* somebody waits for one that does not come */
} * told;

static char mounted[64], folder_in[80], file_in[80];
static const char *content; /* of the file in it */
static size_t content_len;

static void describe(uint64_t node, struct fuse_attr *attr)
{
	*attr = (struct fuse_attr){ .ino = node,
				    .mode = node == FILE_NODE ? S_IFREG | 0755 : S_IFDIR | 0755,
				    .nlink = node == FILE_NODE ? 1 : 2,
				    .size = node == FILE_NODE ? content_len : 0,
				    .blksize = 4096 };
}

union body {
	struct fuse_init_out init;
	struct fuse_entry_out entry;
	struct fuse_attr_out attr;
	struct fuse_open_out open;
	struct fuse_statfs_out statfs;
};

/* What is kept for no time at all, so that every look asks. Returns an errno. */
static int answer_to(const struct fuse_in_header *request, union body *body, const char **bytes,
		     size_t *len)
{
	const char *name = (const char *)(request + 1);
	const struct fuse_read_in *part = (const struct fuse_read_in *)(request + 1);

	*bytes = (const char *)body;
	*len = 0;
	switch (request->opcode) {
	case FUSE_INIT:
		body->init = (struct fuse_init_out){ .major = FUSE_KERNEL_VERSION,
						     .minor = 31,
						     .max_readahead = 1 << 16,
						     .max_write = 1 << 16 };
		*len = sizeof(body->init);
		return 0;
	case FUSE_LOOKUP:
		body->entry = (struct fuse_entry_out){ .nodeid = strcmp(name, "d") == 0 ? FOLDER
								 : strcmp(name, "f") == 0
									 ? FILE_NODE
									 : 0 };
		if (!body->entry.nodeid)
			return ENOENT;
		describe(body->entry.nodeid, &body->entry.attr);
		*len = sizeof(body->entry);
		return 0;
	case FUSE_GETATTR:
		body->attr = (struct fuse_attr_out){ 0 };
		describe(request->nodeid, &body->attr.attr);
		*len = sizeof(body->attr);
		return 0;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		body->open = (struct fuse_open_out){ 0 };
		*len = sizeof(body->open);
		return 0;
	case FUSE_READ:
		if (part->offset < content_len) {
			*bytes = content + part->offset;
			*len = content_len - part->offset;
			*len = *len < part->size ? *len : part->size;
		}
		return 0;
	case FUSE_STATFS:
		body->statfs = (struct fuse_statfs_out){ .st = { .bsize = 4096, .namelen = 255 } };
		*len = sizeof(body->statfs);
		return 0;
	case FUSE_READDIR:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
	case FUSE_FLUSH:
	case FUSE_ACCESS:
		return 0;
	default:
		return ENOSYS;
	}
}

static bool wants_none(uint32_t opcode)
{
	return opcode == FUSE_FORGET || opcode == FUSE_BATCH_FORGET || opcode == FUSE_INTERRUPT;
}

static _Noreturn void answer_all(int fd)
{
	static char request[1 << 17];
	const struct fuse_in_header *head = (const struct fuse_in_header *)request;
	struct fuse_out_header out;
	union body body;
	const char *bytes;
	size_t len;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	while (read(fd, request, sizeof(request)) > 0) {
		if (wants_none(head->opcode))
			continue;
		if (head->opcode != FUSE_INIT && told->asked++ >= told->answers) {
			told->silent = 1; /* and who waits cannot even be killed */
			continue;
		}
		int num = answer_to(head, &body, &bytes, &len);

		out = (struct fuse_out_header){ .len = (uint32_t)(sizeof(out) + (num ? 0 : len)),
						.error = -num,
						.unique = head->unique };
		struct iovec parts[] = { { &out, sizeof(out) }, { (void *)bytes, num ? 0 : len } };

		if (writev(fd, parts, 2) < 0 && errno != ENOENT) /* who asked is gone */
			_exit(1);
	}
	_exit(0);
}

/* Whoever answers, so many times. -1: there is none to be had. */
static pid_t mount_fickle(int answers)
{
	char options[128];
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

	*told = (struct told){ .answers = answers };
	(void)snprintf(options, sizeof(options),
		       "fd=%d,rootmode=40000,user_id=%u,group_id=%u,allow_other", fd,
		       (unsigned)geteuid(), (unsigned)getegid());
	if (fd < 0 || mount("fickle", mounted, "fuse", MS_NOSUID | MS_NODEV, options) < 0) {
		print_message("skipped: no FUSE to be had: %s\n", strerror(errno));
		(void)close(fd);
		return -1;
	}
	pid_t pid = fork();

	if (pid == 0)
		answer_all(fd);
	(void)close(fd);
	return pid;
}

/* All who wait for it fail then. */
static void end_fickle(pid_t answerer)
{
	assert_int_equal(kill(answerer, SIGKILL), 0);
	assert_int_equal(waitpid(answerer, NULL, 0), answerer);
	assert_int_equal(umount2(mounted, MNT_DETACH), 0);
}

/* ---- whose pool -------------------------------------------------------------------------------
 */

static void send_pool(int fd, const char *kind, const char *of, const char *sources)
{
	char head[512];

	(void)snprintf(head, sizeof(head), "{\"do\":\"pool\",\"pool\":1,\"%s\":\"%s\"}", kind, of);
	assert_true(send_frame(fd, head, sources, strlen(sources)));
}

/* Whether a frame comes before somebody waits for an answer that does not. */
static bool comes(int fd, char head[4096])
{
	const struct timeval soon = { .tv_usec = 20000 };
	char byte;

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)), 0);
	for (int64_t until = now_ms() + 15000; now_ms() < until;) {
		if (recv(fd, &byte, 1, MSG_PEEK) == 1) {
			const struct timeval ever = { 0 };

			(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &ever, sizeof(ever));
			return receive_frame(fd, head);
		}
		if (told->silent)
			return false;
	}
	fail_msg("neither an answer nor anybody who waits");
	return false;
}

static int64_t longest;

/* Calls, and a pool of their own, of others. */
static void assert_others(void)
{
	for (int i = 0; i < 5; i++) {
		int64_t begun = now_ms();

		assert_value(good, "echo", "{}", "{}");
		longest = now_ms() - begun > longest ? now_ms() - begun : longest;
	}
	int fd;
	int64_t begun = now_ms();

	connect_apart(greet_with_pool, &fd, 1);
	longest = now_ms() - begun > longest ? now_ms() - begun : longest;
	(void)close(fd);
	if (longest > 2000)
		fail_msg("after %d answers another client waited for %d ms", told->answers,
			 (int)longest);
}

struct wish {
	const char *kind, *of, *sources, *tool, *body;
	size_t body_len;
	const char *refused; /* where there is no such pool in the end: why */
	int (*greet)(void);  /* NULL: as others do */
};

/* Whether all that was asked was answered: then the call is ok. */
static bool try_wish(const struct wish *wish, int answers)
{
	char head[4096], call[256];
	pid_t answerer = mount_fickle(INT_MAX);
	int fd;

	if (answerer < 0)
		SKIP("no FUSE can be mounted here");
	connect_apart(wish->greet ? wish->greet : greet, &fd, 1);
	*told = (struct told){ .answers = answers };
	send_pool(fd, wish->kind, wish->of, wish->sources);
	bool came = comes(fd, head);
	bool refused = came && wish->refused && strstr(head, wish->refused);

	if (came && !refused && !strstr(head, "\"ok\":true"))
		fail_msg("after %d answers: %s", answers, head);
	if (came && !refused) {
		(void)snprintf(
			call, sizeof(call),
			"{\"do\":\"call\",\"call\":1,\"pool\":1,\"tool\":\"%s\",\"id\":\"c\"}",
			wish->tool);
		assert_true(send_frame(fd, call, wish->body, wish->body_len));
		do
			came = comes(fd, head);
		while (came && !strstr(head, "\"is\":\"done\""));
		if (came && !strstr(head, "\"status\":\"ok\""))
			fail_msg("after %d answers: %s", answers, head);
	}
	assert_others();
	(void)close(fd); /* who waits is left, and others do not wait for it either */
	assert_others();
	bool all = came && told->asked;

	end_fickle(answerer);
	return all;
}

/* From the first look to the last, and then the control: with all answers it is served. */
static void try_all(const struct wish *wish)
{
	int answers = 0, tried = 0;

	longest = 0;
	for (; !try_wish(wish, answers); tried++) {
		answers += answers < 12 ? 1 : answers / 8 + 1;
		assert_true(answers < 20000);
	}
	assert_true(tried > 0 && answers > 0);
	print_message("silent %d times, after up to %d answers: others waited for %d ms at most\n",
		      tried, answers, (int)longest);
}

#define BODY(text) .body = text, .body_len = sizeof(text)

static void test_folder_for_reading(void **state)
{
	char sources[160];

	(void)state;
	(void)snprintf(sources, sizeof(sources), "[{\"key\":\"files.read\",\"value\":\"%s\"}]",
		       folder_in);
	try_all(&(struct wish){ "command", "true", sources, "true", BODY("true") });
}

static void test_folder_for_writing(void **state)
{
	char sources[160];

	(void)state;
	(void)snprintf(sources, sizeof(sources), "[{\"key\":\"files.write\",\"value\":\"%s\"}]",
		       folder_in);
	try_all(&(struct wish){ "command", "true", sources, "true", BODY("true") });
}

static void test_folder_with_a_deny(void **state)
{
	char sources[320];

	(void)state;
	(void)snprintf(sources, sizeof(sources),
		       "[{\"key\":\"files.read\",\"value\":\"%s\"},"
		       "{\"key\":\"files.deny\",\"value\":\"%s/secret\"}]",
		       folder_in, folder_in);
	try_all(&(struct wish){ "command", "true", sources, "true", BODY("true"),
				.refused = "cannot be kept closed" });
}

static void test_policy(void **state)
{
	char sources[160];

	(void)state;
	content = "{\"limits\": {\"pids\": 7}}";
	content_len = strlen(content);
	(void)snprintf(sources, sizeof(sources), "[{\"load\":\"%s\"}]", file_in);
	try_all(&(struct wish){ "command", "true", sources, "true", BODY("true") });
}

static void test_command(void **state)
{
	(void)state;
	content = "#!/bin/sh\nexit 0\n";
	content_len = strlen(content);
	try_all(&(struct wish){ "command", file_in, "[]", "f", BODY("f") });
}

/* Runs this program as it is there, which connects. */
static int greet_from_there(void)
{
	char number[16];
	int pair[2], status;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	(void)snprintf(number, sizeof(number), "%d", pair[1]);
	pid_t pid = fork();

	if (pid == 0) {
		(void)execl(file_in, "f", "--greet", socket_path, number, NULL);
		_exit(1);
	}
	int fd = take_fd(pair[0]);

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return fd;
}

/* What holds tools ready is executed outside of cells: the client's own program. */
static void test_program(void **state)
{
	struct stat st;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	assert_int_equal(fstat(fd, &st), 0);
	content_len = (size_t)st.st_size;
	content = mmap(NULL, content_len, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_ptr_not_equal(content, MAP_FAILED);
	(void)close(fd);
	try_all(&(struct wish){ "program", file_in, "[]", "echo", "{}", 2,
				.greet = greet_from_there });
	(void)munmap((void *)content, content_len);
}

static int begin_each(void **state)
{
	(void)state;
	(void)snprintf(mounted, sizeof(mounted), "%s/fickle", folder);
	(void)snprintf(folder_in, sizeof(folder_in), "%s/d", mounted);
	(void)snprintf(file_in, sizeof(file_in), "%s/f", mounted);
	(void)mkdir(mounted, 0755);
	begin_good(NULL, tools);
	return 0;
}

static int end_each(void **state)
{
	(void)umount2(mounted, MNT_DETACH); /* where it failed */
	if (running > 0)
		end_good();
	(void)clear_away(state);
	return rmdir(mounted);
}

#define EACH(function) cmocka_unit_test_setup_teardown(function, begin_each, end_each)

int main(int argc, char **argv)
{
	const struct CMUnitTest all[] = {
		EACH(test_folder_for_reading),
		EACH(test_folder_for_writing),
		EACH(test_folder_with_a_deny),
		EACH(test_policy),
		EACH(test_command),
		EACH(test_program),
	};

	if (argc == 4 && strcmp(argv[1], "--greet") == 0) {
		(void)snprintf(socket_path, sizeof(socket_path), "%s", argv[2]);
		pass_fd(atoi(argv[3]), greet());
		return 0;
	}
	/* Mounts are for this program and the server alone; what is shared is for no calls. */
	if (!getenv("VITRO_ZYGOTE")) {
		if (unshare(CLONE_NEWNS) < 0 ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
			return (void)puts("1..0 # SKIP no mount namespace to be had"), 0;
		told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			    -1, 0);
	}
	return RUN_TESTS(argc, argv, tools, all);
}
