/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/client.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "watch/procfs.h"

int64_t vt_client_since(pid_t pid)
{
	enum { START = 22 }; /* a field of `stat` */
	char path[64], text[1024];

	if (pid <= 0)
		return 0;
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid); /* fits */
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

	if (len < 0)
		return 0;
	text[len] = '\0';
	return vt_proc_stat_number(text, START);
}

struct vt_client *vt_client_find(struct vt_client *first, pid_t pid, int64_t since, uid_t uid)
{
	struct vt_client *client = first;

	while (client && (pid > 0 ? client->pid != pid || client->since != since
				  : client->pid != 0 || client->uid != uid))
		client = client->next;
	return client;
}

struct vt_client *vt_client_new(struct vt_client **first, pid_t pid, int64_t since, uid_t uid)
{
	struct vt_client *client = calloc(1, sizeof(*client));

	if (!client)
		return NULL;
	client->holders = 1;
	client->pid = pid > 0 ? pid : 0;
	client->since = since;
	client->uid = uid;
	client->next = *first;
	client->link = first;
	if (client->next)
		client->next->link = &client->next;
	*first = client;
	return client;
}

void vt_client_release(struct vt_client *client)
{
	if (!client || --client->holders > 0)
		return;
	*client->link = client->next;
	if (client->next)
		client->next->link = client->link;
	free(client);
}
