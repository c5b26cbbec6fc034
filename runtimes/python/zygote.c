/* SPDX-License-Identifier: Apache-2.0 */
/*
 * _vitro_zygote: what a Python interpreter needs to be a zygote. It joins the hull, takes orders,
 * and forks occupants by the same code that seals every other; around each fork the interpreter
 * does what it does around one of its own. zygote.py decides everything else. One module serves
 * every Python from 3.8 on, by the limited API.
 *
 * A process has one zygote. Whatever fails for the supervisor's sake ends in SystemExit: he has
 * been told, or is gone.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "launch/writable.h"
#include "launch/zygote.h"

enum { LARGE = 4 << 20 };

struct state {
	struct vt_zygote zygote;
	bool joined;
	bool entering; /* while an occupant is forked */
	bool awaited;  /* in an occupant */
};

/* The supervisor has nothing more to hear. */
static PyObject *leave(const struct vt_err *err)
{
	PyObject *code = PyLong_FromLong(err->num == EPIPE ? 0 : 1);

	if (code) {
		PyErr_SetObject(PyExc_SystemExit, code);
		Py_DECREF(code);
	}
	return NULL;
}

/* NULL, and an exception, where nothing was joined. */
static struct vt_zygote *find_zygote(PyObject *module)
{
	struct state *state = PyModule_GetState(module);

	if (!state || !state->joined) {
		PyErr_SetString(PyExc_RuntimeError, "no hull was joined");
		return NULL;
	}
	return &state->zygote;
}

/* ---- where cells can write ----------------------------------------------------------------- */

static int append(PyObject *list, PyObject *item)
{
	int r = item ? PyList_Append(list, item) : -1;

	Py_XDECREF(item);
	return r;
}

/* (path, descriptor): the zygote will not see what is there, but can tell whether something is. */
static int add_place(void *user, const char *path)
{
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return append(user, Py_BuildValue("(Ni)", PyUnicode_DecodeFSDefault(path), fd));
}

static PyObject *describe(const struct vt_plan *plan)
{
	PyObject *places = PyList_New(0), *all = NULL;

	if (places && vt_writable_list(plan, add_place, places) == 0)
		all = Py_BuildValue("{sLsOsO}", "result_bytes", (long long)plan->result_bytes,
				    "writable", places, "bare", plan->bare ? Py_True : Py_False);
	Py_XDECREF(places);
	return all;
}

/* ---- what is done ahead of calls ------------------------------------------------------------ */

/*
 * PEP 578. The headers of the limited API leave it out, as it is for programs that embed Python;
 * but it is documented, and every CPython from 3.8 on exports it with this signature. The other
 * came with 3.9.
 */
int PySys_AddAuditHook(int (*hook)(const char *event, PyObject *args, void *user), void *user);
PyInterpreterState *PyInterpreterState_Get(void) __attribute__((weak));

/* Who is told of files that are opened; NULL: nobody. Not a module's: a hook is there for good, and
 * in all interpreters of the process. */
static PyObject *sees;
/* The one that it is of. 3.8 does not tell, and has one lock for all. */
static PyInterpreterState *home;

/* Occupants have it as well, and pay for it at each event of theirs. */
static int see(const char *event, PyObject *args, void *unused)
{
	(void)unused;
	if (!sees || strcmp(event, "open") != 0 || (home && PyInterpreterState_Get() != home))
		return 0;
	PyObject *seen = PyObject_CallObject(sees, args);

	Py_XDECREF(seen);
	return seen ? 0 : -1;
}

static PyObject *watch(PyObject *module, PyObject *function)
{
	(void)module;
	if (sees || !PyCallable_Check(function)) {
		PyErr_SetString(PyExc_TypeError, "a function, once");
		return NULL;
	}
	if (PySys_AddAuditHook(see, NULL) < 0)
		return NULL;
	Py_INCREF(function);
	home = PyInterpreterState_Get ? PyInterpreterState_Get() : NULL;
	sees = function;
	Py_RETURN_NONE;
}

/* ---- the zygote ---------------------------------------------------------------------------- */

/* Whether modules may be imported, which shows when all is covered. */
static PyObject *add_ahead(PyObject *about, bool loads_ahead)
{
	if (about &&
	    PyDict_SetItemString(about, "loads_ahead", loads_ahead ? Py_True : Py_False) < 0) {
		Py_DECREF(about);
		return NULL;
	}
	return about;
}

static PyObject *join(PyObject *module, PyObject *args)
{
	struct state *state = PyModule_GetState(module);
	struct vt_err err;
	int fd;

	if (!state || !PyArg_ParseTuple(args, "i:join", &fd))
		return NULL;
	if (state->joined) {
		PyErr_SetString(PyExc_RuntimeError, "a hull was joined already");
		return NULL;
	}
	if (vt_zygote_join(&state->zygote, fd, &err) < 0)
		return leave(&err);
	PyObject *about = NULL;

	if (vt_zygote_furnish(&state->zygote, &err) == 0) {
		about = describe(state->zygote.plan); /* of what is there before it is covered */
		if (!about || vt_zygote_cover(&state->zygote, &err) == 0) {
			state->joined = true;
			return add_ahead(about, state->zygote.loads_ahead);
		}
	}
	Py_XDECREF(about);
	vt_zygote_fail(&state->zygote, &err);
	return leave(&err);
}

static PyObject *ready(PyObject *module, PyObject *unused)
{
	struct vt_zygote *zygote = find_zygote(module);
	struct vt_err err;

	(void)unused;
	if (!zygote)
		return NULL;
	if (vt_zygote_ready(zygote, &err) < 0)
		return leave(&err);
	Py_RETURN_NONE;
}

/* 1 in the zygote, 0 in an occupant. */
static int enter(struct state *state, struct vt_zygote_order *order, struct vt_err *err)
{
	state->entering = true;
	PyOS_BeforeFork();
	int r = vt_zygote_enter(&state->zygote, order, err);

	if (r == 0) {
		sees = NULL; /* it is sealed. To free it would copy its page */
		PyOS_AfterFork_Child();
	} else {
		PyOS_AfterFork_Parent();
	}
	state->entering = false;
	return r;
}

/* Of (module, function). */
static PyObject *call_unless_entering(PyObject *both, PyObject *unused)
{
	const struct state *state = PyModule_GetState(PyTuple_GetItem(both, 0));

	(void)unused;
	if (!state)
		return NULL;
	if (state->entering)
		Py_RETURN_NONE;
	return PyObject_CallObject(PyTuple_GetItem(both, 1), NULL);
}

static PyObject *spare(PyObject *module, PyObject *function)
{
	static PyMethodDef method = { "spared", call_unless_entering, METH_NOARGS, NULL };
	PyObject *both = PyTuple_Pack(2, module, function);
	PyObject *spared = both ? PyCFunction_New(&method, both) : NULL;

	Py_XDECREF(both);
	return spared;
}

static PyObject *next_order(PyObject *module, PyObject *args)
{
	struct vt_zygote *zygote = find_zygote(module);
	struct vt_zygote_order order;
	struct vt_err err;
	int wait = 1, r;

	if (!zygote || !PyArg_ParseTuple(args, "|p:next", &wait))
		return NULL;
	struct state *state = PyModule_GetState(module);

	do {
		r = vt_zygote_take(zygote, &order, &err);
		if (r == 0 && order.note.kind == VT_NOTE_LEARN)
			return PyUnicode_DecodeUTF8(order.note.err.what,
						    (Py_ssize_t)strlen(order.note.err.what),
						    "replace");
		state->awaited = r == 0 && order.note.awaited;
		if (r == 0)
			r = enter(state, &order, &err);
		if (r < 0)
			return leave(&err);
	} while (wait && r > 0);
	if (r > 0)
		return PyUnicode_FromString("");
	Py_RETURN_NONE;
}

/* As UTF-8, whatever is in it: a call may have chosen names of which it tells. */
static PyObject *encode(PyObject *text)
{
	return PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
}

/* A note with a text, or None: there is none. */
static PyObject *tell(PyObject *module, PyObject *args, enum vt_note_kind kind, int num)
{
	struct vt_zygote *zygote = find_zygote(module);
	PyObject *told = Py_None;
	struct vt_err err;

	if (!zygote || !PyArg_ParseTuple(args, "|O", &told))
		return NULL;
	PyObject *text = told == Py_None ? NULL : encode(told);

	if (told != Py_None && !text)
		return NULL;
	int r = vt_zygote_tell(zygote, kind, text ? num : 0, text ? PyBytes_AsString(text) : "",
			       &err);

	Py_XDECREF(text);
	if (r < 0)
		return leave(&err);
	Py_RETURN_NONE;
}

static PyObject *learned(PyObject *module, PyObject *args)
{
	return tell(module, args, VT_NOTE_LEARNED, ENOEXEC);
}

static PyObject *loads(PyObject *module, PyObject *args)
{
	return tell(module, args, VT_NOTE_LOADS, 0);
}

static PyObject *tell_line(PyObject *module, PyObject *args)
{
	return tell(module, args, VT_NOTE_TOLD, 0);
}

static PyObject *tell_warning(PyObject *module, PyObject *args)
{
	return tell(module, args, VT_NOTE_TOLD, ENOEXEC);
}

static PyObject *turn_home(PyObject *module, PyObject *none)
{
	struct vt_zygote *zygote = find_zygote(module);
	struct vt_err err;

	(void)none;
	if (!zygote)
		return NULL;
	if (vt_zygote_turn_home(zygote, &err) < 0)
		return leave(&err);
	Py_RETURN_NONE;
}

static PyObject *fail(PyObject *module, PyObject *args)
{
	struct vt_zygote *zygote = find_zygote(module);
	PyObject *told;
	struct vt_err err;

	if (!zygote || !PyArg_ParseTuple(args, "O:fail", &told))
		return NULL;
	PyObject *text = encode(told);

	if (!text)
		return NULL;
	(void)vt_fail(&err, VT_STEP_COMMAND, ENOEXEC, "%s", PyBytes_AsString(text)); /* as told */
	Py_DECREF(text);
	vt_zygote_fail(zygote, &err);
	return leave(&err);
}

static PyObject *count(PyObject *module, int (*count_in)(const struct vt_zygote *))
{
	const struct vt_zygote *zygote = find_zygote(module);

	if (!zygote)
		return NULL;
	int count = count_in(zygote);

	if (count < 0) {
		errno = -count;
		return PyErr_SetFromErrno(PyExc_OSError);
	}
	return PyLong_FromLong(count);
}

static PyObject *threads(PyObject *module, PyObject *unused)
{
	(void)unused;
	return count(module, vt_zygote_threads);
}

static PyObject *shared(PyObject *module, PyObject *unused)
{
	(void)unused;
	return count(module, vt_zygote_shared);
}

static PyObject *fork_apart(PyObject *module, PyObject *unused)
{
	struct vt_zygote *zygote = find_zygote(module);
	struct vt_err err;
	int pidfd = -1;

	(void)unused;
	if (!zygote)
		return NULL;
	PyOS_BeforeFork();
	int r = vt_zygote_fork_apart(zygote, &pidfd, &err);

	if (r == 0)
		PyOS_AfterFork_Child();
	else
		PyOS_AfterFork_Parent();
	if (r < 0) {
		PyErr_Format(PyExc_OSError, "%s: %s", err.what, strerror(err.num));
		return NULL;
	}
	return PyLong_FromLong(pidfd);
}

/* ESRCH: it has ended, which is what is wanted. */
static PyObject *kill_apart(PyObject *module, PyObject *args)
{
	int pidfd;

	(void)module;
	if (!PyArg_ParseTuple(args, "i:kill", &pidfd))
		return NULL;
	if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0) < 0 && errno != ESRCH)
		return PyErr_SetFromErrno(PyExc_OSError);
	Py_RETURN_NONE;
}

/* ---- an occupant --------------------------------------------------------------------------- */

/* As C has it: that of a bare cell differs from the zygote's. */
static PyObject *environment(PyObject *module, PyObject *unused)
{
	PyObject *all = PyList_New(0);

	(void)module;
	(void)unused;
	for (char **variable = environ; all && variable && *variable; variable++)
		if (append(all, PyBytes_FromString(*variable)) < 0) {
			Py_DECREF(all);
			return NULL;
		}
	return all;
}

static PyObject *is_awaited(PyObject *module, PyObject *unused)
{
	const struct state *state = PyModule_GetState(module);

	(void)unused;
	return state ? PyBool_FromLong(state->awaited) : NULL;
}

static PyObject *park(PyObject *module, PyObject *unused)
{
	struct vt_err err;

	(void)module;
	(void)unused;
	if (vt_zygote_park(&err) < 0)
		return leave(&err);
	Py_RETURN_NONE;
}

/*
 * Memory that is about to be filled: touched page by page, that takes longer than to copy into it.
 * Where the kernel cannot do it ahead, it does it then.
 */
static void warm_up(char *memory, size_t size)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t from = ((uintptr_t)memory + page - 1) & ~(page - 1);
	uintptr_t to = ((uintptr_t)memory + size) & ~(page - 1);

	if (from < to)
		(void)madvise((void *)from, to - from,
			      size >= LARGE ? MADV_HUGEPAGE : MADV_POPULATE_WRITE);
}

/* As recv(), until all is there. 0: the other side is gone. Negative: with an exception. */
static int fill(int fd, char *to, size_t size)
{
	while (size) {
		ssize_t got;

		Py_BEGIN_ALLOW_THREADS got = recv(fd, to, size, 0);
		Py_END_ALLOW_THREADS if (got == 0) return 0;
		if (got < 0 && errno != EINTR) {
			PyErr_SetFromErrno(PyExc_OSError);
			return -1;
		}
		if (got < 0 && PyErr_CheckSignals() < 0)
			return -1;
		if (got > 0) {
			to += got;
			size -= (size_t)got;
		}
	}
	return 1;
}

static PyObject *receive(PyObject *module, PyObject *args)
{
	Py_ssize_t size, begun_len;
	const char *begun;
	int fd, writable;

	(void)module;
	if (!PyArg_ParseTuple(args, "iny#p:receive", &fd, &size, &begun, &begun_len, &writable))
		return NULL;
	if (begun_len > size) {
		PyErr_SetString(PyExc_ValueError, "more has come than there is");
		return NULL;
	}
	PyObject *made = writable ? PyByteArray_FromStringAndSize(NULL, size)
				  : PyBytes_FromStringAndSize(NULL, size);

	if (!made)
		return NULL;
	char *to = writable ? PyByteArray_AsString(made) : PyBytes_AsString(made);

	warm_up(to, (size_t)size);
	memcpy(to, begun, (size_t)begun_len);
	int r = fill(fd, to + begun_len, (size_t)(size - begun_len));

	if (r > 0)
		return made;
	Py_DECREF(made);
	if (r < 0)
		return NULL;
	Py_RETURN_NONE;
}

static PyMethodDef methods[] = {
	{ "join", join, METH_VARARGS,
	  "join(fd): waits for the plan and joins the hull. What the cells are like, as a dict." },
	{ "watch", watch, METH_O,
	  "watch(function): it is told of each file before it is opened, as the audit event open "
	  "has it, and may raise. Not in occupants." },
	{ "ready", ready, METH_NOARGS, "Tells that orders are taken from now on." },
	{ "next", next_order, METH_VARARGS,
	  "next(wait=True): obeys orders until there is something to say. None: this is an "
	  "occupant "
	  "now, sealed. A text: a module to learn; empty, without wait: one order was obeyed." },
	{ "spare", spare, METH_O,
	  "spare(function): what calls it, but not while an occupant is forked." },
	{ "learned", learned, METH_VARARGS,
	  "learned(problem=None): the module is learned, or cannot be." },
	{ "loads", loads, METH_VARARGS,
	  "loads(module): it is about to be imported, before ready." },
	{ "tell", tell_line, METH_VARARGS, "tell(text): a line for the supervisor's log." },
	{ "warn", tell_warning, METH_VARARGS, "warn(text): the same, as a warning." },
	{ "turn_home", turn_home, METH_NOARGS,
	  "Processes that are started from now on end with the hull; there can be no threads." },
	{ "fail", fail, METH_VARARGS,
	  "fail(text): why there will be no occupants. Does not return." },
	{ "threads", threads, METH_NOARGS, "How many threads this process has." },
	{ "shared", shared, METH_NOARGS,
	  "How many pieces of memory this process would share with its forks." },
	{ "fork", fork_apart, METH_NOARGS,
	  "fork(): a fork in no cell. In it -1; in the zygote its pidfd. Others reap it." },
	{ "kill", kill_apart, METH_VARARGS, "kill(pidfd): ends such a fork." },
	{ "environment", environment, METH_NOARGS, "The environment as C has it, as bytes." },
	{ "receive", receive, METH_VARARGS,
	  "receive(fd, size, begun, writable): size bytes, of which the first have come, as bytes "
	  "or as a bytearray. None: the other side is gone." },
	{ "is_awaited", is_awaited, METH_NOARGS,
	  "In an occupant: whether a call waits for it already." },
	{ "park", park, METH_NOARGS, "In an occupant: what comes next on 3 is its call." },
	{ NULL, NULL, 0, NULL },
};

static struct PyModuleDef definition = {
	PyModuleDef_HEAD_INIT,
	.m_name = "_vitro_zygote",
	.m_doc = "Joins a hull, and forks occupants into cells. For vitro's own zygote.py.",
	.m_size = sizeof(struct state),
	.m_methods = methods,
};

PyMODINIT_FUNC PyInit__vitro_zygote(void);

PyMODINIT_FUNC PyInit__vitro_zygote(void)
{
	return PyModule_Create(&definition);
}
