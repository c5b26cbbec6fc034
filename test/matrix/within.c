/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix/within.h"

#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uapi/socket.h"

enum {
	EXIT_OWN = 125,
	NEWER_CALLS = 64, /* how many calls that are newer than a profile are denied */
};

static const char usage[] =
	"usage: vitro-within [OPTION]... -- CMD ARG...\n"
	"  --deny CALL=ERRNO    a system call that is answered with an error; may be repeated\n"
	"  --deny-userns        no user namespaces: EPERM, and ENOSYS for clone3\n"
	"  --at CALL=COMMAND    a system call before which a shell command is run, each time; may "
	"be\n"
	"                       repeated\n"
	"  --no-passrights      sockets know no SO_PASSRIGHTS, as before Linux 6.16\n"
	"  --landlock-abi N     Landlock answers as one of ABI N would\n"
	"  --oci-profile FILE   a seccomp profile as Docker writes them\n"
	"  --caps LIST          the capabilities that stay, as CAP_CHOWN,CAP_KILL\n"
	"  --uid N              the user and group to become\n";

void die(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	fputs("vitro-within: ", stderr);
	vfprintf(stderr, format, args);
	fprintf(stderr, "%s%s\n", error ? ": " : "", error ? strerror(error) : "");
	va_end(args);
	exit(EXIT_OWN);
}

static int errno_by_name(const char *name)
{
	for (int i = 1; i < 256; i++) {
		const char *known = strerrorname_np(i);

		if (known && strcmp(known, name) == 0)
			return i;
	}
	die(0, "no errno is called '%s'", name);
}

/* CALL=ERRNO; a call that libseccomp does not know may be given by number. */
static void parse_denial(struct environment *environment, char *text)
{
	char *error = strchr(text, '=');

	if (error == NULL)
		die(0, "--deny wants CALL=ERRNO, not '%s'", text);
	if (environment->denied_count == MAX_DENIED)
		die(0, "more than %d times --deny", MAX_DENIED);
	struct denial *denial = &environment->denied[environment->denied_count++];

	*error++ = '\0';
	denial->error = errno_by_name(error);
	denial->call = seccomp_syscall_resolve_name(text);
	if (denial->call == __NR_SCMP_ERROR)
		denial->call = atoi(text);
	if (denial->call <= 0)
		die(0, "no system call is called '%s'", text);
}

static void parse_moment(struct environment *environment, char *text)
{
	char *command = strchr(text, '=');

	if (command == NULL)
		die(0, "--at wants CALL=COMMAND, not '%s'", text);
	if (environment->moment_count == MAX_MOMENTS)
		die(0, "more than %d times --at", MAX_MOMENTS);
	struct moment *moment = &environment->moments[environment->moment_count++];

	*command++ = '\0';
	moment->command = command;
	moment->call = seccomp_syscall_resolve_name(text);
	if (moment->call < 0)
		die(0, "no system call is called '%s' here", text);
}

static uint64_t parse_caps(char *text)
{
	uint64_t caps = 0;

	for (char *save, *name = strtok_r(text, ",", &save); name;
	     name = strtok_r(NULL, ",", &save)) {
		cap_value_t cap;

		if (cap_from_name(name, &cap) < 0)
			die(0, "no capability is called '%s'", name);
		caps |= 1ULL << cap;
	}
	return caps;
}

/* Returns the command. */
static char **parse(struct environment *environment, char **argv)
{
	char **arg = argv + 1;

	for (; *arg && strcmp(*arg, "--") != 0; arg += 2) {
		if (strcmp(*arg, "--deny-userns") == 0) {
			environment->no_userns = true;
			arg--;
		} else if (strcmp(*arg, "--no-passrights") == 0) {
			environment->no_passrights = true;
			arg--;
		} else if (arg[1] == NULL) {
			die(0, "%s", usage);
		} else if (strcmp(*arg, "--deny") == 0) {
			parse_denial(environment, arg[1]);
		} else if (strcmp(*arg, "--at") == 0) {
			parse_moment(environment, arg[1]);
		} else if (strcmp(*arg, "--landlock-abi") == 0) {
			environment->landlock_abi = atoi(arg[1]);
		} else if (strcmp(*arg, "--oci-profile") == 0) {
			environment->oci_profile = arg[1];
		} else if (strcmp(*arg, "--caps") == 0) {
			environment->caps = parse_caps(arg[1]);
		} else if (strcmp(*arg, "--uid") == 0) {
			environment->uid = (uid_t)atoi(arg[1]);
		} else {
			die(0, "%s", usage);
		}
	}
	if (*arg == NULL || arg[1] == NULL)
		die(0, "%s", usage);
	return arg + 1;
}

static void deny_userns(scmp_filter_ctx filter)
{
	const struct scmp_arg_cmp asks = SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_NEWUSER, CLONE_NEWUSER);
	int r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1, asks);

	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(unshare), 1, asks);
	/* Its flags are out of a filter's sight. */
	if (r == 0)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	if (r < 0)
		die(-r, "deny user namespaces");
}

static void deny_passrights(scmp_filter_ctx filter)
{
	const struct scmp_arg_cmp option[] = { SCMP_A1(SCMP_CMP_EQ, SOL_SOCKET),
					       SCMP_A2(SCMP_CMP_EQ, SO_PASSRIGHTS) };
	const uint32_t error = SCMP_ACT_ERRNO(ENOPROTOOPT);
	int r = seccomp_rule_add_array(filter, error, SCMP_SYS(setsockopt), 2, option);

	if (r == 0)
		r = seccomp_rule_add_array(filter, error, SCMP_SYS(getsockopt), 2, option);
	if (r < 0)
		die(-r, "deny SO_PASSRIGHTS");
}

static bool has_questions(const struct environment *environment)
{
	return environment->landlock_abi || environment->moment_count;
}

/*
 * Returns the descriptor that questions arrive at, or -1 if none can. Calls that are
 * newer than the profile get ENOSYS, as runc does it; 0: there is no profile.
 */
static int install_filter(const struct environment *environment, int newest_call)
{
	if (environment->denied_count == 0 && !environment->no_userns &&
	    !environment->no_passrights && !has_questions(environment) && newest_call == 0)
		return -1;
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int r = filter ? 0 : -ENOMEM;

	if (r == 0 && geteuid() == 0)
		r = seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);
	/* i386 and x32 are as they were. */
	if (r == 0)
		r = seccomp_attr_set(filter, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ALLOW);
	for (size_t i = 0; r == 0 && i < environment->denied_count; i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO((uint16_t)environment->denied[i].error),
				     environment->denied[i].call, 0);
	for (size_t i = 0; r == 0 && i < environment->moment_count; i++)
		r = seccomp_rule_add(filter, SCMP_ACT_NOTIFY, environment->moments[i].call, 0);
	for (int i = 1; r == 0 && newest_call && i <= NEWER_CALLS; i++)
		r = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), newest_call + i, 0);
	if (r < 0)
		die(-r, "make a filter");
	if (environment->no_userns)
		deny_userns(filter);
	if (environment->no_passrights)
		deny_passrights(filter);
	if (environment->landlock_abi)
		add_landlock_rules(filter, environment->landlock_abi);
	r = seccomp_load(filter);
	if (r < 0)
		die(-r, "install a filter");
	int listener = has_questions(environment) ? seccomp_notify_fd(filter) : -1;

	if (has_questions(environment) && listener < 0)
		die(-listener, "listen to a filter");
	return listener;
}

/* The bounding set, and with it what the command can have at most. */
static void drop_caps(const struct environment *environment)
{
	cap_t caps = cap_get_proc();

	if (caps == NULL)
		die(errno, "get capabilities");
	for (cap_value_t cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++) {
		if (environment->caps & (1ULL << cap))
			continue;
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 ||
		    cap_set_flag(caps, CAP_INHERITABLE, 1, &cap, CAP_CLEAR) < 0 ||
		    cap_set_flag(caps, CAP_PERMITTED, 1, &cap, CAP_CLEAR) < 0 ||
		    cap_set_flag(caps, CAP_EFFECTIVE, 1, &cap, CAP_CLEAR) < 0)
			die(errno, "drop capability %d", cap);
	}
	if (cap_set_proc(caps) < 0)
		die(errno, "set capabilities");
	cap_free(caps);
}

static void become(uid_t uid)
{
	if (setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0)
		die(errno, "become user %u", uid);
}

/* Filters come first, while there is the capability to install them without no_new_privs, as in a
 * container. */
static int enter(const struct environment *environment)
{
	int newest_call = environment->oci_profile ? install_profile(environment) : 0;
	int listener = install_filter(environment, newest_call);

	if (~environment->caps != 0)
		drop_caps(environment);
	if (environment->uid != (uid_t)-1)
		become(environment->uid);
	return listener;
}

static _Noreturn void start(char **command)
{
	execvp(command[0], command);
	die(errno, "%s", command[0]);
}

static void send_descriptor(int socket, int fd)
{
	char space[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 0;
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof(space),
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(head), &fd, sizeof(int));
	if (sendmsg(socket, &message, MSG_NOSIGNAL) < 0)
		die(errno, "hand over a descriptor");
}

static int receive_descriptor(int socket)
{
	char space[CMSG_SPACE(sizeof(int))], byte;
	struct iovec data = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr message = {
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = space,
		.msg_controllen = sizeof(space),
	};
	int fd = -1;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1 && CMSG_FIRSTHDR(&message))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return fd;
}

static void answer(const struct environment *environment, const struct seccomp_notif *question,
		   struct seccomp_notif_resp *reply)
{
	memset(reply, 0, sizeof(*reply));
	reply->id = question->id;
	reply->flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE;
	for (size_t i = 0; i < environment->moment_count; i++)
		if (environment->moments[i].call == question->data.nr &&
		    system(environment->moments[i].command) < 0)
			die(errno, "%s", environment->moments[i].command);
	if (environment->landlock_abi && question->data.nr == SCMP_SYS(landlock_create_ruleset)) {
		reply->flags = 0;
		answer_landlock(question, reply, environment->landlock_abi);
	}
}

/* Until nobody is left to ask. */
static void answer_all(const struct environment *environment, int listener)
{
	struct seccomp_notif *question = NULL;
	struct seccomp_notif_resp *reply = NULL;
	struct pollfd poller = { .fd = listener, .events = POLLIN };
	int r = seccomp_notify_alloc(&question, &reply);

	if (r < 0)
		die(-r, "listen to a filter");
	for (;;) {
		if (poll(&poller, 1, -1) < 0 && errno != EINTR)
			die(errno, "wait for a question");
		if (poller.revents & (POLLHUP | POLLERR))
			break; /* the last one that the filter was on is gone */
		memset(question, 0, sizeof(*question));
		if (!(poller.revents & POLLIN) || seccomp_notify_receive(listener, question) != 0)
			continue;
		answer(environment, question, reply);
		(void)seccomp_notify_respond(listener,
					     reply); /* a caller may have died meanwhile */
	}
	seccomp_notify_free(question, reply);
}

/* The parent stays and answers; it ends as the command does. */
static int answer_for(const struct environment *environment, char **command)
{
	int pair[2], status;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		die(errno, "make a socket pair");
	pid_t pid = fork();

	if (pid < 0)
		die(errno, "fork");
	if (pid == 0) {
		int listener = enter(environment);

		/* After the ids: changing those clears it. */
		if (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) < 0)
			die(errno, "ask to die with the parent");
		send_descriptor(pair[1], listener);
		if (close(listener) < 0)
			die(errno, "close");
		start(command);
	}
	if (close(pair[1]) < 0)
		die(errno, "close");
	/* What is sent to the group is the command's to handle. */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGQUIT, SIG_IGN);
	int listener = receive_descriptor(pair[0]);

	if (listener >= 0)
		answer_all(environment, listener);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die(errno, "wait");
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
	struct environment environment = { .caps = ~0ULL, .uid = (uid_t)-1 };
	char **command = parse(&environment, argv);

	(void)argc;
	if (has_questions(&environment))
		return answer_for(&environment, command);
	(void)enter(&environment); /* nobody to answer */
	start(command);
}
