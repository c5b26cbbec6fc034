/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets: the host's loopback by each spelling, unix sockets, and families that filters forget. */
#include "escape.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_alg.h>
#include <linux/if_ether.h>
#include <linux/netlink.h>
#include <linux/vm_sockets.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { MPTCP = 262 };

/* Connects, and reads the word that the test's listener says, so that nothing else passes for it.
 */
static int greet(int fd, const struct sockaddr *address, socklen_t len)
{
	char word[16] = "";
	if (connect(fd, address, len) < 0)
		return denied(errno, "connect");
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	if (poll(&ready, 1, 2000) == 1 && read(fd, word, sizeof(word) - 1) > 0 &&
	    strncmp(word, "hello", 5) == 0)
		return reached("the listener says hello");
	return unclear("connected, but nobody says hello");
}

static int dial4(const char *host, long port, int type, int protocol)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	inet_pton(AF_INET, host, &to.sin_addr);
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		return denied(errno, "socket");
	return greet(fd, (const struct sockaddr *)&to, sizeof(to));
}

static int dial6(const char *host, long port)
{
	struct sockaddr_in6 to = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };
	inet_pton(AF_INET6, host, &to.sin6_addr);
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return denied(errno, "socket");
	return greet(fd, (const struct sockaddr *)&to, sizeof(to));
}

static int tcp4(int argc, char **argv)
{
	(void)argc;
	return dial4("127.0.0.1", number(argv, 1), SOCK_STREAM, 0);
}

static int tcp4_other(int argc, char **argv)
{
	(void)argc;
	return dial4("127.7.7.7", number(argv, 1), SOCK_STREAM, 0);
}

static int tcp4_zero(int argc, char **argv)
{
	(void)argc;
	return dial4("0.0.0.0", number(argv, 1), SOCK_STREAM, 0);
}

static int mptcp(int argc, char **argv)
{
	(void)argc;
	return dial4("127.0.0.1", number(argv, 1), SOCK_STREAM, MPTCP);
}

static int tcp6(int argc, char **argv)
{
	(void)argc;
	return dial6("::1", number(argv, 1));
}

static int tcp6_mapped(int argc, char **argv)
{
	(void)argc;
	return dial6("::ffff:127.0.0.1", number(argv, 1));
}

static int fast_open(int argc, char **argv)
{
	(void)argc;
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)number(argv, 1)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char word[16] = "";
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return denied(errno, "socket");
	if (sendto(fd, "x", 1, MSG_FASTOPEN | MSG_NOSIGNAL, (struct sockaddr *)&to, sizeof(to)) < 0)
		return denied(errno, "sendto with MSG_FASTOPEN");
	return recv(fd, word, sizeof(word), 0) > 0 ? reached("the listener says hello")
						   : unclear("sent, but no answer");
}

static int udp4(int argc, char **argv)
{
	(void)argc;
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons((uint16_t)number(argv, 1)),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	char word[16] = "";
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return denied(errno, "socket");
	if (sendto(fd, "x", 1, 0, (struct sockaddr *)&to, sizeof(to)) < 0)
		return denied(errno, "sendto");
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	if (poll(&ready, 1, 500) != 1)
		return denied(ETIMEDOUT, "no answer");
	return recv(fd, word, sizeof(word), 0) > 0 ? reached("the listener says hello")
						   : denied(errno, "recv");
}

/* argv: the name of an abstract socket, without its zero byte */
static int abstract(int argc, char **argv)
{
	(void)argc;
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	size_t len = strlen(argv[1]);
	memcpy(to.sun_path + 1, argv[1], len);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return denied(errno, "socket");
	return greet(fd, (const struct sockaddr *)&to,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len));
}

/* argv: a socket in a folder that is granted for reading */
static int unix_path(int argc, char **argv)
{
	(void)argc;
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	snprintf(to.sun_path, sizeof(to.sun_path), "%s", argv[1]);
	if (access(argv[1], F_OK) < 0)
		return broken("%s is not there", argv[1]);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return denied(errno, "socket");
	return greet(fd, (const struct sockaddr *)&to, sizeof(to));
}

/* A pair needs no socket(), and one end can be pointed elsewhere. */
static int unix_pair(int argc, char **argv)
{
	(void)argc;
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int pair[2];
	snprintf(to.sun_path, sizeof(to.sun_path), "%s", argv[1]);
	if (access(argv[1], F_OK) < 0)
		return broken("%s is not there", argv[1]);
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, pair) < 0)
		return denied(errno, "socketpair");
	if (sendto(pair[0], "x", 1, 0, (struct sockaddr *)&to, sizeof(to)) < 0 &&
	    connect(pair[0], (struct sockaddr *)&to, sizeof(to)) < 0)
		return denied(errno, "sendto and connect");
	return reached("a pair's end talks to the host's socket");
}

static int open_socket(int family, int type, int protocol, const char *what)
{
	int fd = socket(family, type | SOCK_CLOEXEC, protocol);
	if (fd < 0)
		return denied(errno, "%s", what);
	close(fd);
	return reached("%s", what);
}

static int inet(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return open_socket(AF_INET, SOCK_DGRAM, 0, "IPv4 socket");
}

static int inet6(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return open_socket(AF_INET6, SOCK_DGRAM, 0, "IPv6 socket");
}

static int raw4(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return open_socket(AF_INET, SOCK_RAW, IPPROTO_ICMP, "raw IPv4 socket");
}

static int raw6(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return open_socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6, "raw IPv6 socket");
}

static int packet(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return open_socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL), "packet socket");
}

static int netlink(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return open_socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE, "netlink socket");
}

static int netlink_audit(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return open_socket(AF_NETLINK, SOCK_RAW, NETLINK_KOBJECT_UEVENT, "uevent socket");
}

static int vsock(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return open_socket(AF_VSOCK, SOCK_STREAM, 0, "vsock socket");
}

static int alg(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return open_socket(AF_ALG, SOCK_SEQPACKET, 0, "crypto socket");
}

static int exotic(int argc, char **argv)
{
	static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET, SOCK_RAW };
	(void)argc;
	(void)argv;
	int err = 0;
	for (int family = 2; family < 64; family++) {
		if (family == AF_INET || family == AF_INET6 || family == AF_NETLINK)
			continue;
		for (int t = 0; t < 4; t++) {
			int fd = socket(family, types[t] | SOCK_CLOEXEC, 0);
			if (fd >= 0)
				return reached("family %d, type %d", family, types[t]);
			err = errno;
		}
	}
	return denied(err, "no other family");
}

/* argv: the family, if not TIPC. One that has no pairs is asked for one all the same. */
static int exotic_pair(int argc, char **argv)
{
	int pair[2], family = argc > 1 ? (int)number(argv, 1) : 30 /* AF_TIPC */;

	if (socketpair(family, SOCK_STREAM, 0, pair) == 0 || errno == EOPNOTSUPP)
		return reached("asked for a pair of sockets of family %d", family);
	return denied(errno, "socketpair");
}

static int bind_any(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	struct sockaddr_in at = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return denied(errno, "socket");
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 1) < 0)
		return denied(errno, "bind and listen");
	return reached("listens on every address");
}

const struct act net_acts[] = {
	{ "tcp4", "TCP to 127.0.0.1", "reaches a server on the host", tcp4 },
	{ "tcp4_other", "TCP to 127.7.7.7", "the same by another address", tcp4_other },
	{ "tcp4_zero", "TCP to 0.0.0.0", "the same by the empty address", tcp4_zero },
	{ "tcp6", "TCP to ::1", "the same over IPv6", tcp6 },
	{ "tcp6_mapped", "TCP to ::ffff:127.0.0.1", "the same by a mapped address", tcp6_mapped },
	{ "mptcp", "multipath TCP", "the same by another protocol", mptcp },
	{ "fast_open", "TCP fast open", "the same without connect", fast_open },
	{ "udp4", "UDP to 127.0.0.1", "talks to a server on the host", udp4 },
	{ "bind_any", "listening on every address", "serves on the host's network", bind_any },
	{ "abstract", "abstract unix socket", "reaches a service of the host", abstract },
	{ "unix_path", "unix socket in a read grant", "reaches a service of the host", unix_path },
	{ "unix_pair", "socketpair, then connect", "the same without socket()", unix_pair },
	{ "inet", "IPv4 socket", "reaches the kernel's network code", inet },
	{ "inet6", "IPv6 socket", "reaches the kernel's network code", inet6 },
	{ "raw4", "raw IPv4 socket", "forges packets", raw4 },
	{ "raw6", "raw IPv6 socket", "forges packets", raw6 },
	{ "packet", "packet socket", "listens to the wire", packet },
	{ "netlink", "netlink route socket", "asks the kernel about the network", netlink },
	{ "netlink_audit", "netlink uevent socket", "listens to the kernel", netlink_audit },
	{ "vsock", "vsock", "talks to the hypervisor", vsock },
	{ "alg", "AF_ALG", "reaches the kernel's crypto code", alg },
	{ "exotic", "rare socket families", "reaches rarely used kernel code", exotic },
	{ "exotic_pair", "TIPC socketpair", "the same by a pair", exotic_pair },
	{ NULL }
};
