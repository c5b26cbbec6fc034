/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vitro-object FILE: the zygote of functions of a shared object. It is a program of its own, since
 * a static one can load nothing. The object is loaded when the hull has been joined: its
 * constructors run as nobody, in the hull's root and empty network, and see no more of the host
 * than its cells do.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "task/task.h"

/* Where it cannot be kept from what calls can write, a call loads it, in its cell. */
struct object {
	void *handle; /* NULL: it is not loaded yet */
	const char *path;
};

static int load(const char *path, void **ret_object, struct vt_err *err)
{
	*ret_object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (*ret_object)
		return 0;
	/* It begins with the path, as this does. */
	const char *why = dlerror();
	size_t len = strlen(path);

	if (strncmp(why, path, len) == 0 && strncmp(why + len, ": ", 2) == 0)
		why += len + 2;
	return vt_fail(err, VT_STEP_COMMAND, ENOEXEC, "cannot load '%s': %s", path, why);
}

/* The functions that the object calls are this program's: it has all of them. */
static vitro_function *find(void *user, const char *name, struct vt_err *err)
{
	struct object *object = user;
	union {
		void *object;
		vitro_function *function;
	} found = { NULL };

	if (!object->handle && load(object->path, &object->handle, err) < 0)
		return NULL;
	found.object = dlsym(object->handle, name);
	if (!found.object)
		(void)vt_fail(err, VT_STEP_COMMAND, ENOENT,
			      "the object has no function of that name");
	return found.function;
}

int main(int argc, char **argv)
{
	struct object object = { .path = argc == 2 ? argv[1] : "" };
	const struct vt_task_tools tools = { .find = find, .user = &object };
	struct vt_zygote zygote;
	struct vt_err err;
	int fd = vt_task_control();

	if (argc != 2 || fd < 0) {
		(void)fputs("vitro-object: this is for vitro, which starts it itself\n", stderr);
		return 125;
	}
	if (vt_zygote_join(&zygote, fd, &err) < 0)
		return err.num == EPIPE ? 0 : 1;
	/* It brings libraries along, of which no call is to have written one. */
	if (vt_zygote_furnish(&zygote, &err) < 0 || vt_zygote_cover(&zygote, &err) < 0 ||
	    (zygote.loads_ahead && load(argv[1], &object.handle, &err) < 0)) {
		vt_zygote_fail(&zygote, &err);
		return 1;
	}
	vt_task_serve(&zygote, &tools);
}
