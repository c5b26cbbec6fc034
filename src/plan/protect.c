/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two of the names need words. What git executes stands in the configuration of a git folder, which
 * is `.git`, one of its modules, or the files of a work tree; and it may lead to other files, of
 * which those inside the grant are names, too. And a home has its own names, wherever it lies.
 *
 * A name that is missing is kept only where somebody works: at the grant's root, in repositories
 * and homes. Nothing can be mounted on it, so that it is looked for when the call is over.
 */
#include "plan/protect.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/path.h"
#include "plan/fail.h"
#include "plan/gitconfig.h"
#include "plan/way.h"

/* ---- the names ----------------------------------------------------------------------------- */

/* clang-format off */
/* In any folder: run or trusted by an editor, an agent or a shell that starts there. */
static const char *const anywhere[] = {
	".aider.conf.yml", ".claude", ".codex", ".continue", ".cursor", ".devcontainer",
	".devcontainer.json", ".envrc", ".gemini", ".husky", ".idea", ".kiro", ".mcp.json", ".opencode",
	".roo", ".vscode", ".windsurf", ".zed", "opencode.json",
};

/* In a git folder: run by `git status`, by what they say or where they lead. */
static const char *const of_git[] = { "commondir", "config", "config.worktree", "gitdir", "hooks" };

/* The same of others, with the folder that is theirs. */
static const char *const of_others[][2] = {
	{ ".hg", "hgrc" },	     { ".hg", "hgrc-not-shared" },
	{ ".hg", "sharedpath" },     { ".jj", "repo/config.toml" },
	{ ".jj", "workspace-config.toml" },
};

/* In a home: run or trusted by the next shell, session or tool of its user. */
static const char *const of_home[] = {
	".aws", ".bash_aliases", ".bash_completion", ".bash_login", ".bash_logout", ".bash_profile",
	".bashrc", ".cargo", ".config", ".cshrc", ".docker", ".emacs", ".emacs.d", ".emacs.el", ".emacs.elc", ".exrc",
	".gdbinit", ".gitconfig", ".gnupg", ".gvimrc", ".hgrc", ".inputrc", ".kshrc", ".kube",
	".lessfilter", ".local/bin", ".local/lib", ".local/share/applications",
	".local/share/bash-completion", ".local/share/dbus-1", ".local/share/fish",
	".local/share/nvim/site", ".local/share/systemd", ".login", ".logout", ".mkshrc", ".npmrc",
	".nvm", ".oh-my-zsh", ".pam_environment", ".profile", ".pyenv", ".pypirc", ".screenrc",
	".selected_editor", ".ssh", ".tcshrc", ".tmux.conf", ".vim", ".vimrc", ".xinitrc",
	".xprofile", ".xsession", ".xsessionrc",
	".zcompdump", ".zlogin", ".zlogout", ".zprofile", ".zshenv", ".zshrc", "bin",
};
/* clang-format on */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum {
	FOLDERS_MOST = 1000,     /* of a grant that are looked into */
	NESTED_MOST = 1024,      /* names that are held below what lies at its root */
	GUARDS_MOST = 8192,      /* of a grant, with the folders around them */
	GIT_FOLDERS_MOST = 1000, /* the same, of those that git has for itself */
	CONFIG_BYTES = 64 << 10, /* of a configuration that is read */
	CONFIGS_MOST = 1500,     /* of a grant that are read: more than OWN_MOST has */
	OWN_MOST = 256,          /* git folders in the one at the root, before that is closed */
	LINK_COST = 64,          /* of one that is followed, in looks */
	LOOKS_MOST = 16 << 10,   /* at where names lead: at its root, and below */
	WAYS_MOST = 2048,        /* folders that stay in their places: the same */
};

/* ---- what was found ------------------------------------------------------------------------ */

struct found {
	const char *path; /* relative to the grant */
	enum vt_guard_kind kind;
	uint64_t dev, ino; /* 0: it is not there, or of a folder not known */
};

/* A configuration of git's that is to be read, by its path on the host. */
struct config {
	const char *path;
	const char *tree; /* the work tree that hooks are relative to; NULL: it is not known */
};

/* One grant while its names are looked for. */
struct protecting {
	struct vt_plan *plan;
	const struct vt_policy *policy;
	const struct vt_host *host;
	struct vt_arena *arena;
	const char *const *homes;
	size_t home_count;
	const char *const *opened; /* host paths that are granted for writing by name */
	size_t opened_count;

	const struct vt_build *build;
	struct found *found;
	size_t count, room;
	const char **folders; /* to look into, nearer ones first */
	size_t folder_count, folder_room;
	const char **git_folders; /* whose modules and work trees are to be looked for */
	size_t git_folder_count, git_folder_room, git_looked;
	struct config *configs;
	size_t config_count, config_room, config_read;
	size_t looks, nested_count, way_count;
	bool crowded; /* there is more in one of git's folders than is looked at */
	bool nested;  /* what lies at the root has its room; of the rest there may be too much */
	const char *closed; /* a configuration at the root that cannot be read, and may be opened
			       again */
	bool failed;        /* out of memory */
};

static const char *join(struct protecting *p, const char *folder, const char *name)
{
	const char *path = *folder ? vt_arena_printf(p->arena, "%s/%s", folder, name)
				   : vt_arena_dup(p->arena, name);

	p->failed |= !path;
	return path ? path : "";
}

/* What a path below the grant is on the host. */
static const char *on_host(struct protecting *p, const char *path)
{
	return *path ? join(p, p->build->from, path) : p->build->from;
}

static void *grow(struct protecting *p, void *items, size_t count, size_t *room, size_t size)
{
	if (count < *room)
		return items;
	size_t more = *room ? 2 * *room : 64;
	void *copy = vt_arena_array(p->arena, more, size);

	if (!copy) {
		p->failed = true;
		return NULL;
	}
	if (count)
		memcpy(copy, items, count * size);
	*room = more;
	return copy;
}

/* Told once, of the first that it is true of. */
static void leave_out_host(struct protecting *p, const char *host_path, const char *why)
{
	if (p->plan->unlooked)
		return;
	p->plan->unlooked = vt_arena_printf(p->arena, "%s: %s", host_path, why);
	p->failed |= !p->plan->unlooked;
}

static void leave_out(struct protecting *p, const char *path, const char *why)
{
	leave_out_host(p, on_host(p, path), why);
}

static void add(struct protecting *p, const char *path, enum vt_guard_kind kind,
		const struct vt_path *seen)
{
	struct found *items;

	if (p->nested && kind == VT_GUARD_NAME && p->nested_count++ >= NESTED_MOST) {
		leave_out(p, path, "more names than are kept, here and beyond");
		return;
	}
	items = grow(p, p->found, p->count, &p->room, sizeof(*items));
	if (!items)
		return;
	p->found = items;
	p->found[p->count++] = (struct found){ path, kind, seen ? seen->dev : 0,
					       seen ? seen->ino : 0 };
}

/* Whether there is room for one more folder that stays in its place. */
static bool may_keep_place(struct protecting *p, const char *path)
{
	if (p->way_count++ < WAYS_MOST)
		return true;
	leave_out(p, path, "more folders around names than are kept, here and beyond");
	return false;
}

static void keep_place(struct protecting *p, const char *path)
{
	if (may_keep_place(p, path))
		add(p, path, VT_GUARD_FOLDER, NULL);
}

static void add_folder(struct protecting *p, const char *path)
{
	const char **items;

	if (p->folder_count == FOLDERS_MOST) {
		leave_out(p, path, "more folders than are looked into, here and beyond");
		return;
	}
	items = grow(p, p->folders, p->folder_count, &p->folder_room, sizeof(*items));
	if (!items)
		return;
	p->folders = items;
	p->folders[p->folder_count++] = path;
}

/* ---- one folder ---------------------------------------------------------------------------- */

/* What is of interest among the names in a folder. */
struct listing {
	struct protecting *p;
	const char *folder;
	unsigned char git; /* the type of its ".git"; DT_UNKNOWN: there is none */
	bool head, objects, refs;
	uint32_t names;  /* a bit for each of `anywhere` that is there */
	uint32_t others; /* the same of `of_others` */
};

_Static_assert(COUNT(anywhere) <= 32, "a bit for each");

static void see(void *arg, const char *name, unsigned char type)
{
	struct listing *l = arg;

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return;
	if (strcmp(name, ".git") == 0) {
		l->git = type == DT_UNKNOWN ? DT_REG : type;
		return;
	}
	l->head |= strcmp(name, "HEAD") == 0;
	l->objects |= strcmp(name, "objects") == 0;
	l->refs |= strcmp(name, "refs") == 0;
	for (size_t i = 0; i < COUNT(of_others); i++)
		if (strcmp(name, of_others[i][0]) == 0)
			l->others |= 1U << i;
	for (size_t i = 0; (*name == '.' || *name == 'o') && i < COUNT(anywhere); i++)
		if (strcmp(name, anywhere[i]) == 0) {
			l->names |= 1U << i;
			return;
		}
	/* What is installed there is nobody's place to work in, and there are many of them. */
	if (type != DT_DIR || strcmp(name, "node_modules") == 0)
		return;
	/* A call can make millions of them: the path of one too many takes memory, too. */
	add_folder(l->p,
		   l->p->folder_count < FOLDERS_MOST ? join(l->p, l->folder, name) : l->folder);
}

static bool is_there(struct protecting *p, const char *path, struct vt_path *ret_seen)
{
	return p->host->look(p->host, on_host(p, path), ret_seen) == 0;
}

/*
 * A folder of whose names nothing is known is a name itself: a call may have closed it for as long
 * as it is looked into, or filled it.
 */
static void add_whole(struct protecting *p, const char *folder)
{
	struct vt_path seen;

	add(p, folder, VT_GUARD_NAME, is_there(p, folder, &seen) ? &seen : NULL);
}

static bool list(struct protecting *p, struct listing *l)
{
	int r = p->host->entries
			? p->host->entries(p->host, on_host(p, l->folder), p->build->dev, see, l)
			: -ENOTSUP;

	if (r == -EACCES && *l->folder)
		add_whole(p, l->folder);
	/* What went meanwhile, or is a link, is not looked into. */
	if (r < 0 && r != -ENOENT && r != -ENOTDIR && r != -ELOOP)
		leave_out(p, l->folder, r == -EXDEV ? "another file system" : strerror(-r));
	return r == 0;
}

/* What a path of the host is in the grant. NULL: it lies elsewhere, or is the grant itself. */
static const char *in_grant(struct protecting *p, const char *path)
{
	size_t len = strlen(p->build->from);

	if (!vt_path_lies_in(path, p->build->from) || !path[len])
		return NULL;
	const char *inside = vt_arena_dup(p->arena, path + len + 1);

	p->failed |= !inside;
	return inside;
}

/* Of what is missing, the first part: else it could be made as a link to somewhere else. */
static void add_missing(struct protecting *p, const char *path)
{
	struct vt_path seen;

	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		const char *part = vt_arena_dupn(p->arena, path, (size_t)(slash - path));

		p->failed |= !part;
		if (!part || !is_there(p, part, &seen)) {
			add(p, part ? part : path, VT_GUARD_NAME, NULL);
			return;
		}
	}
	add(p, path, VT_GUARD_NAME, NULL);
}

/* A path without ".." and "."; no link is on it. */
static const char *without_dots(struct protecting *p, const char *path)
{
	char *clean = vt_arena_dup(p->arena, path), *end = clean;

	p->failed |= !clean;
	for (size_t len; clean && *(path += strspn(path, "/")); path += len) {
		len = strcspn(path, "/");
		if (len == 2 && path[0] == '.' && path[1] == '.') {
			while (end > clean && *--end != '/')
				;
		} else if (len != 1 || path[0] != '.') {
			*end++ = '/';
			memcpy(end, path, len);
			end += len;
		}
	}
	if (clean)
		*end = '\0';
	return clean;
}

/* Where a path of the host leads. False: nowhere, or it changes meanwhile; memory that lacks shows.
 */
static bool find_way(struct protecting *p, const char *path, struct vt_way *ret_way)
{
	enum { CHARS_OF_LOOK = 16 };
	struct vt_err err;

	if (p->looks >= LOOKS_MOST) {
		leave_out_host(p, path, "more links and paths than are followed, here and beyond");
		return false;
	}
	int r = vt_way_find(p->host, p->arena, path, "files.protect", ret_way, &err);

	p->looks += 1 + strlen(path) / CHARS_OF_LOOK;
	p->looks += r == -ELOOP ? LOOKS_MOST / 4 : r == 0 ? ret_way->link_count * LINK_COST : 0;
	/* What has no link on it was found as it was written. */
	if (r == 0 && (strstr(ret_way->real, "/.") || strstr(ret_way->real, "//"))) {
		const char *clean = without_dots(p, ret_way->real);

		if (clean && strcmp(clean, ret_way->real) != 0) {
			const struct vt_link *links = ret_way->links;
			size_t count = ret_way->link_count;

			r = vt_way_find(p->host, p->arena, clean, "files.protect", ret_way, &err);
			ret_way->links = count ? links : ret_way->links;
			ret_way->link_count = count ? count : ret_way->link_count;
		}
	}
	p->failed |= r == -ENOMEM;
	return r == 0;
}

/* Where it leads is a name, and so is each link on the way. Returns where; or NULL. */
static const char *add_led(struct protecting *p, const char *path)
{
	struct vt_path seen;
	struct vt_way way;

	if (!find_way(p, path, &way))
		return NULL;
	for (size_t i = 0; i < way.link_count; i++) {
		const char *link = in_grant(p, way.links[i].path);

		if (link)
			add(p, link, VT_GUARD_NAME, is_there(p, link, &seen) ? &seen : NULL);
	}
	const char *inside = in_grant(p, way.real);

	if (inside && !way.err)
		add(p, inside, VT_GUARD_NAME, &way.seen);
	else if (inside)
		add_missing(p, inside);
	return way.real;
}

/* Whether a link is on the way to a name below a folder, which has none itself. */
static bool is_led(struct protecting *p, const char *folder, const char *name)
{
	char target[PATH_MAX];
	struct vt_path itself;

	for (const char *slash = strchr(name, '/'); slash; slash = strchr(slash + 1, '/')) {
		const char *part = vt_arena_dupn(p->arena, name, (size_t)(slash - name));

		p->failed |= !part;
		if (!part || p->host->step(p->host, on_host(p, join(p, folder, part)), &itself,
					   target, sizeof(target)) < 0)
			return false;
		if (itself.link)
			return true;
	}
	return false;
}

/* Returns where it leads on the host, which is another name if that is elsewhere in the grant. */
static const char *add_name(struct protecting *p, const char *path)
{
	const char *host_path = on_host(p, path);
	char target[PATH_MAX];
	struct vt_path seen, itself;
	bool link = p->host->step(p->host, host_path, &itself, target, sizeof(target)) == 0 &&
		    itself.link;
	bool there = (!link || p->looks < LOOKS_MOST) && is_there(p, path, &seen);

	if (there)
		add(p, path, VT_GUARD_NAME, &seen);
	else if (link)
		add(p, path, VT_GUARD_NAME, NULL);
	else
		add_missing(p, path);
	const char *led = link ? add_led(p, host_path) : NULL;

	return led ? led : host_path;
}

/* A name of some parts, in a folder that no link leads to. */
static void add_name_in(struct protecting *p, const char *folder, const char *name)
{
	const char *path = join(p, folder, name);

	if (is_led(p, folder, name))
		(void)add_led(p, on_host(p, path));
	else
		(void)add_name(p, path);
}

/* ---- git ----------------------------------------------------------------------------------- */

static bool is_same(const char *one, const char *other)
{
	return one == other || (one && other && strcmp(one, other) == 0);
}

static void add_config(struct protecting *p, const char *path, const char *tree)
{
	for (size_t i = 0; i < p->config_count; i++)
		if (strcmp(p->configs[i].path, path) == 0 && is_same(p->configs[i].tree, tree))
			return;
	if (p->config_count == CONFIGS_MOST) {
		leave_out_host(p, path, "more configurations than are read, here and beyond");
		return;
	}
	struct config *items = grow(p, p->configs, p->config_count, &p->config_room,
				    sizeof(*items));

	if (!items)
		return;
	p->configs = items;
	p->configs[p->config_count++] = (struct config){ path, tree };
}

/* A configuration that is being read. */
struct reading {
	struct protecting *p;
	const char *folder, *tree;
	char told[PATH_MAX]; /* the tree that it says itself, the last time; or "" */
};

/* A path as git takes it. NULL: it is relative to what is not known. */
static const char *led_by(struct protecting *p, const char *base, const char *value)
{
	const char *path = value;

	if (value[0] == '~' && value[1] == '/' && p->home_count)
		path = vt_arena_printf(p->arena, "%s%s", p->homes[0], value + 1);
	else if (*value != '/' && base)
		path = vt_arena_printf(p->arena, "%s/%s", base, value);
	p->failed |= !path;
	return path && *path == '/' ? path : NULL;
}

static void follow(void *arg, enum vt_gitconfig_path kind, const char *value)
{
	const struct reading *reading = arg;
	struct protecting *p = reading->p;

	/* What is not followed takes no memory either. */
	if (kind == VT_GITCONFIG_TREE || p->looks >= LOOKS_MOST)
		return;
	const char *path = led_by(p, kind == VT_GITCONFIG_HOOKS ? reading->tree : reading->folder,
				  value);
	const char *led = path ? add_led(p, path) : NULL;

	if (led && kind == VT_GITCONFIG_INCLUDE)
		add_config(p, led, reading->tree);
}

/* Where a module says that its work tree is. */
static void find_tree(void *arg, enum vt_gitconfig_path kind, const char *value)
{
	struct reading *reading = arg;

	if (kind == VT_GITCONFIG_TREE)
		memcpy(reading->told, value, strlen(value) + 1); /* less than PATH_MAX */
}

static const char *folder_of(struct protecting *p, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *folder = vt_arena_dupn(p->arena, path, slash ? (size_t)(slash - path) : 0);

	p->failed |= !folder;
	return folder;
}

/* Each may lead to more of them. */
static void read_configs(struct protecting *p)
{
	bool any = p->config_read < p->config_count && p->host->read_file;
	char *text = any ? vt_arena_alloc(p->arena, CONFIG_BYTES) : NULL;

	p->failed |= any && !text;
	for (; any && !p->failed && p->config_read < p->config_count; p->config_read++) {
		const struct config config = p->configs[p->config_read];
		struct reading reading = { p, folder_of(p, config.path), config.tree, "" };
		ssize_t len = p->host->read_file(p->host, config.path, text, CONFIG_BYTES);

		if (len == -EACCES && !p->nested && !p->closed &&
		    vt_path_lies_in(config.path, p->build->from))
			p->closed = config.path;
		if (len == -EFBIG)
			leave_out_host(p, config.path, "too large to be read");
		if (len <= 0 || p->failed)
			continue;
		if (!reading.tree)
			vt_gitconfig_paths(text, (size_t)len, find_tree, &reading);
		if (*reading.told)
			reading.tree = led_by(p, reading.folder, reading.told);
		vt_gitconfig_paths(text, (size_t)len, follow, &reading);
	}
}

/* A file of one line that git makes. NULL: it is none. */
static const char *read_line(struct protecting *p, const char *path)
{
	char text[PATH_MAX];
	ssize_t len = p->host->read_file ? p->host->read_file(p->host, path, text, sizeof(text))
					 : 0;

	while (len > 0 && (text[len - 1] == '\n' || text[len - 1] == '\r'))
		len--;
	return len > 0 ? vt_arena_dupn(p->arena, text, (size_t)len) : NULL;
}

static const char *relative_to(struct protecting *p, const char *folder, const char *path)
{
	return *path == '/' ? path : vt_arena_printf(p->arena, "%s/%s", folder, path);
}

/* The git folder that a work tree's .git names where it is a file. NULL: it names none. */
static const char *named_by(struct protecting *p, const char *git, const char *tree)
{
	static const char prefix[] = "gitdir: ";
	const char *line = read_line(p, git), *folder = NULL;

	if (line && strncmp(line, prefix, sizeof(prefix) - 1) == 0) {
		folder = relative_to(p, tree, line + sizeof(prefix) - 1);
		p->failed |= !folder;
	}
	return folder;
}

/*
 * What a repository's configuration leads to, wherever the repository is: `git` is a work tree's
 * .git.
 */
static void add_configs_of(struct protecting *p, const char *git, const char *tree)
{
	const char *named = named_by(p, git, tree), *folder = named ? named : git;

	for (int i = 0; folder && i < 2; i++) {
		const char *config = vt_arena_printf(p->arena, "%s/config", folder);
		const char *more = vt_arena_printf(p->arena, "%s/config.worktree", folder);
		const char *common = vt_arena_printf(p->arena, "%s/commondir", folder);

		if (!config || !more || !common) {
			p->failed = true;
			return;
		}
		add_config(p, config, tree);
		add_config(p, more, tree);
		common = read_line(p, common);
		folder = common ? relative_to(p, folder, common) : NULL;
	}
}

/* The nearest one around the grant, whose configuration counts in the grant, too. */
static void add_repository_around(struct protecting *p)
{
	struct vt_path seen;

	for (const char *folder = folder_of(p, p->build->from); folder && !p->failed;
	     folder = *folder ? folder_of(p, folder) : NULL) {
		const char *git = vt_arena_printf(p->arena, "%s/.git", folder);

		p->failed |= !git;
		if (git && p->host->look(p->host, git, &seen) == 0) {
			add_configs_of(p, git, folder);
			return;
		}
	}
}

/* Hooks are often links to files of the work tree. */
struct hooks {
	struct protecting *p;
	const char *folder;
	size_t count;
};

static void see_hook(void *arg, const char *name, unsigned char type)
{
	enum { HOOKS_MOST = 64 };
	struct hooks *hooks = arg;
	struct protecting *p = hooks->p;

	if (type != DT_LNK || hooks->count++ >= HOOKS_MOST)
		return;
	const char *path = vt_arena_printf(p->arena, "%s/%s", hooks->folder, name);

	p->failed |= !path;
	if (path)
		(void)add_led(p, path);
}

static void add_git_names(struct protecting *p, const char *folder, const char *tree)
{
	for (size_t i = 0; i < COUNT(of_git); i++) {
		const char *led = add_name(p, join(p, folder, of_git[i]));

		if (strncmp(of_git[i], "config", 6) == 0)
			add_config(p, led, tree);
		if (strcmp(of_git[i], "hooks") == 0 && p->host->entries) {
			struct hooks hooks = { p, led, 0 };

			(void)p->host->entries(p->host, led, p->build->dev, see_hook, &hooks);
		}
	}
}

/* The folders in one of git's own. */
struct subfolders {
	struct protecting *p;
	const char *folder;
	const char **items;
	size_t count, room;
	bool head, objects; /* it is a git folder itself */
};

static void see_subfolder(void *arg, const char *name, unsigned char type)
{
	struct subfolders *s = arg;

	s->head |= strcmp(name, "HEAD") == 0;
	s->objects |= strcmp(name, "objects") == 0;
	if (type != DT_DIR || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return;
	if (s->count == GIT_FOLDERS_MOST) {
		leave_out(s->p, s->folder, "more folders of git's than are looked into");
		return;
	}
	const char **items = grow(s->p, s->items, s->count, &s->room, sizeof(*items));

	if (!items)
		return;
	s->items = items;
	s->items[s->count++] = join(s->p, s->folder, name);
}

static void leave_out_git(struct protecting *p, const char *folder)
{
	p->crowded = true;
	if (p->nested)
		leave_out(p, folder, "more folders of git's than are looked into, here and beyond");
}

/* Without any where there is no such folder. */
static void list_subfolders(struct protecting *p, const char *folder, struct subfolders *ret_s)
{
	*ret_s = (struct subfolders){ .p = p, .folder = folder };
	if (!p->host->entries)
		return;
	if (p->git_looked++ >= (p->nested ? GIT_FOLDERS_MOST : OWN_MOST)) {
		leave_out_git(p, folder);
		return;
	}
	int r = p->host->entries(p->host, on_host(p, folder), p->build->dev, see_subfolder, ret_s);

	if (r == -EACCES)
		add_whole(p, folder);
	if (ret_s->count <= OWN_MOST)
		return;
	leave_out_git(p, folder);
	ret_s->count = OWN_MOST;
}

enum { DEPTH_MOST = 16 }; /* of folders that have modules in them */

/* Its own names; what else is in it is looked for later. */
static void add_git_folder(struct protecting *p, const char *folder, const char *tree)
{
	const char **items = grow(p, p->git_folders, p->git_folder_count, &p->git_folder_room,
				  sizeof(*items));

	if (!items)
		return;
	p->git_folders = items;
	p->git_folders[p->git_folder_count++] = folder;
	if (*folder)
		keep_place(p, folder);
	add_git_names(p, folder, tree);
}

/* Each is a git folder, or has some in it: names of modules may have a '/'. */
static void add_modules(struct protecting *p, const char *folder, int depth)
{
	struct subfolders s, inner;

	list_subfolders(p, folder, &s);
	for (size_t i = 0; i < s.count; i++) {
		if (depth == DEPTH_MOST) {
			p->crowded = true;
			if (p->nested)
				leave_out(p, s.items[i], "deeper than modules are looked into");
			return;
		}
		list_subfolders(p, s.items[i], &inner);
		if (inner.head && inner.objects)
			add_git_folder(p, s.items[i], NULL);
		else
			add_modules(p, s.items[i], depth + 1);
	}
}

/* Its work trees, which have its configuration, and its modules. */
static void look_into_git(struct protecting *p, const char *folder)
{
	const char *trees = join(p, folder, "worktrees"), *modules = join(p, folder, "modules");
	struct subfolders s;

	p->crowded = false;
	add(p, trees, VT_GUARD_WORKTREES, NULL);
	list_subfolders(p, trees, &s);
	for (size_t i = 0; i < s.count && !p->crowded; i++) {
		const char *git = read_line(p, on_host(p, join(p, s.items[i], "gitdir")));
		const char *tree = git ? folder_of(p, relative_to(p, on_host(p, s.items[i]), git))
				       : NULL;

		add_git_names(p, s.items[i], tree);
		if (tree)
			add_config(p, on_host(p, join(p, folder, "config")), tree);
	}
	add_modules(p, modules, 0);
	/* What a call may have filled takes nothing from what is at the root: it stays as it is. */
	if (p->crowded && !p->nested) {
		add_whole(p, trees);
		add_whole(p, modules);
	}
}

static void add_git(struct protecting *p, const char *folder, unsigned char type)
{
	const char *git = join(p, folder, ".git"), *tree = on_host(p, folder);
	struct vt_path seen;

	if (type == DT_DIR) {
		add_git_folder(p, git, tree);
		return;
	}
	/* A file of a module or a work tree; or a link. Either leads perhaps to one in the grant.
	 */
	const char *git_file = add_name(p, git), *led = git_file;
	const char *named = named_by(p, git_file, tree);
	struct vt_way way;

	if (named && find_way(p, named, &way) && !way.err)
		led = way.real;
	const char *inside = led != git ? in_grant(p, led) : NULL;

	if (inside && is_there(p, inside, &seen) && S_ISDIR(seen.mode)) {
		for (size_t i = 0; i < p->count; i++) /* it is written by git's daily work */
			if (strcmp(p->found[i].path, inside) == 0)
				p->found[i].kind = VT_GUARD_FOLDER;
		add_git_folder(p, inside, tree);
	} else {
		add_configs_of(p, git_file, tree);
	}
}

/* ---- folders ------------------------------------------------------------------------------- */

static bool is_home(const struct protecting *p, const char *host_path)
{
	for (size_t i = 0; i < p->home_count; i++)
		if (strcmp(p->homes[i], host_path) == 0)
			return true;
	return false;
}

static void look_into(struct protecting *p, const char *folder)
{
	const struct vt_strings *more = &p->policy->files.protect;
	struct listing l = { .p = p, .folder = folder };
	struct vt_path seen;
	size_t folders = p->folder_count;
	bool listed = list(p, &l);

	/* Of a machine that cannot be listed, its root can be asked for. */
	if (!listed && !*folder) {
		for (size_t i = 0; i < COUNT(anywhere); i++)
			l.names |= (uint32_t)is_there(p, anywhere[i], &seen) << i;
		if (is_there(p, ".git", &seen))
			l.git = S_ISDIR(seen.mode) && !seen.link ? DT_DIR : DT_REG;
	} else if (!listed) {
		return;
	}
	const bool home = is_home(p, on_host(p, folder));
	const bool bare = l.head && l.objects && l.refs;
	const bool watched = !*folder || l.git != DT_UNKNOWN || home;

	for (size_t i = 0; i < COUNT(anywhere); i++)
		if (l.names & 1U << i)
			(void)add_name(p, join(p, folder, anywhere[i]));
		else if (watched)
			add(p, join(p, folder, anywhere[i]), VT_GUARD_NAME, NULL);
	for (size_t i = 0; i < COUNT(of_others); i++)
		if (l.others & 1U << i)
			add_name_in(p, folder, join(p, of_others[i][0], of_others[i][1]));
	for (size_t i = 0; i < more->count; i++)
		if (watched || is_there(p, join(p, folder, more->items[i]), &seen))
			add_name_in(p, folder, more->items[i]);
	for (size_t i = 0; home && i < COUNT(of_home); i++)
		add_name_in(p, folder, of_home[i]);
	if (l.git != DT_UNKNOWN)
		add_git(p, folder, l.git);
	else if (!*folder)
		add(p, ".git", VT_GUARD_NAME, NULL);
	/* Where .git is none any more, git takes a folder with a HEAD for one, without a work tree.
	 */
	if (watched && !bare)
		(void)add_name(p, join(p, folder, "HEAD"));
	if (bare) {
		p->folder_count = folders; /* what is in it is git's own */
		add_git_folder(p, folder, on_host(p, folder));
	}
	if (watched && *folder)
		keep_place(p, folder);
}

static void add_ways(struct protecting *p);

/*
 * What lies at the root, and where its configuration leads, comes first, and has room whatever a
 * call made below. Then nearer folders, and homes in any case.
 */
static void look_everywhere(struct protecting *p)
{
	size_t git = 0;

	add_folder(p, "");
	look_into(p, "");
	add_repository_around(p);
	read_configs(p);
	for (; git < p->git_folder_count && !p->failed; git++)
		look_into_git(p, p->git_folders[git]);
	p->git_looked = 0;
	read_configs(p);
	add_ways(p);
	p->nested = true;
	p->looks = p->way_count = 0;
	for (size_t i = 0; i < p->home_count; i++)
		if (vt_path_lies_in(p->homes[i], p->build->from) &&
		    strcmp(p->homes[i], p->build->from) != 0)
			add_folder(p, p->homes[i] + strlen(p->build->from) + 1);
	for (size_t i = 1; !p->failed && (i < p->folder_count || git < p->git_folder_count); i++) {
		for (; git < p->git_folder_count && !p->failed; git++)
			look_into_git(p, p->git_folders[git]);
		if (i < p->folder_count)
			look_into(p, p->folders[i]);
	}
	read_configs(p);
	add_ways(p);
}

/* ---- the guards of one grant --------------------------------------------------------------- */

/* What lies in a folder comes after it: '/' is less than any other byte. Names before folders. */
static int by_path(const void *a, const void *b)
{
	const struct found *one = a, *other = b;
	const char *left = one->path, *right = other->path;

	while (*left && *left == *right) {
		left++;
		right++;
	}
	int order = (*left == '/' ? 1 : (unsigned char)*left) -
		    (*right == '/' ? 1 : (unsigned char)*right);

	return order ? order : (int)other->kind - (int)one->kind;
}

/* The folders around each, which could be renamed with it: those that the one before it is not in.
 */
static void add_ways(struct protecting *p)
{
	const char *last = "";

	if (p->count)
		qsort(p->found, p->count, sizeof(*p->found), by_path);
	for (size_t i = 0, count = p->count; i < count && !p->failed; i++) {
		const char *path = p->found[i].path;

		for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
			size_t len = (size_t)(slash - path);

			if (strncmp(last, path, len) == 0 && last[len] == '/')
				continue;
			if (!may_keep_place(p, path))
				return;
			const char *way = vt_arena_dupn(p->arena, path, len);

			p->failed |= !way;
			if (way)
				add(p, way, VT_GUARD_FOLDER, NULL);
		}
		last = path;
	}
}

/* Whether a name is granted for writing itself. Around what is granted it would hold that, too. */
static int is_opened(const struct protecting *p, const char *path, const char **ret_inner)
{
	for (size_t i = 0; i < p->opened_count; i++) {
		if (strcmp(p->opened[i], path) == 0)
			return 1;
		if (vt_path_lies_in(p->opened[i], path))
			*ret_inner = p->opened[i];
	}
	return 0;
}

static int list_guards(struct protecting *p, struct vt_build *build, struct vt_err *err)
{
	struct vt_guard *guards = vt_arena_array(p->arena, p->count + 1, sizeof(*guards));
	const struct found *name = NULL; /* the last that is there, and all of which is kept */
	size_t n = 0;

	if (!guards || p->failed)
		return vt_plan_nomem(err);
	if (p->closed)
		return vt_fail(err, VT_STEP_PLAN, EACCES,
			       "refused: files.write: '%s' cannot be read, so that it is not known "
			       "what files.protect keeps: open it, or --protect none",
			       p->closed);
	if (p->count > GUARDS_MOST)
		return vt_fail(err, VT_STEP_PLAN, E2BIG,
			       "refused: files.write: '%s' has more names that files.protect keeps "
			       "than can be held; grant folders in it, or --protect none",
			       p->build->from);
	if (p->count)
		qsort(p->found, p->count, sizeof(*p->found), by_path);
	for (size_t i = 0; i < p->count; i++) {
		const struct found *found = &p->found[i];
		const char *path = on_host(p, found->path), *inner = NULL;
		struct vt_path seen = { .mode = 0 };

		if ((n && strcmp(guards[n - 1].path, found->path) == 0) ||
		    (name && vt_path_lies_in(found->path, name->path)))
			continue;
		if (found->kind == VT_GUARD_NAME && is_opened(p, path, &inner))
			continue;
		if (found->kind == VT_GUARD_NAME && inner)
			return vt_fail(
				err, VT_STEP_PLAN, EPERM,
				"refused: files.write: '%s' lies in '%s', which files.protect "
				"keeps as it is; grant that itself, or --protect none",
				inner, path);
		/* Folders around what is not there need not be there either. */
		if (found->kind != VT_GUARD_NAME && !is_there(p, found->path, &seen) &&
		    found->kind == VT_GUARD_FOLDER)
			continue;
		guards[n++] = (struct vt_guard){
			.kind = found->kind,
			.path = found->path,
			.dev = found->kind == VT_GUARD_NAME ? found->dev : seen.dev,
			.ino = found->kind == VT_GUARD_NAME ? found->ino : seen.ino,
		};
		if (found->kind == VT_GUARD_NAME && found->ino)
			name = found;
	}
	if (p->failed)
		return vt_plan_nomem(err);
	build->guards = guards;
	build->guard_count = n;
	p->plan->guard_count += n;
	return 0;
}

/* ---- a grant for reading inside one for writing ---------------------------------------------- */

/* Its folders stay where they are, or another path would lead there by the next call. */
static void keep_places(struct protecting *p)
{
	for (size_t i = 0; i < p->plan->build_count; i++) {
		const struct vt_build *inner = &p->plan->builds[i];
		size_t len = strlen(p->build->from);

		if (inner->act != VT_ACT_BIND || inner->writable || !inner->granted ||
		    inner == p->build || !vt_path_lies_in(inner->from, p->build->from) ||
		    !inner->from[len] || !vt_path_lies_in(inner->to, p->build->to) ||
		    strcmp(inner->from + len, inner->to + strlen(p->build->to)) != 0)
			continue;
		for (const char *slash = strchr(inner->from + len + 1, '/'); slash;
		     slash = strchr(slash + 1, '/')) {
			const char *way = vt_arena_dupn(p->arena, inner->from + len + 1,
							(size_t)(slash - inner->from) - len - 1);

			p->failed |= !way;
			if (way)
				add(p, way, VT_GUARD_FOLDER, NULL);
		}
	}
}

/* ---- placeholders -------------------------------------------------------------------------- */

/*
 * Where there is an overlay anyway, what is missing at its root is there, empty, and stays so. Not
 * what people see: git would take HEAD for a file's name as well.
 */
static int place_missing(struct protecting *p, struct vt_build *build, struct vt_err *err)
{
	struct vt_guard *guards = (struct vt_guard *)build->guards;
	const struct vt_veil *old = build->veil;
	struct vt_veil *veil = vt_arena_alloc(p->arena, sizeof(*veil));
	struct vt_veiled *names = vt_arena_array(p->arena, old->count + build->guard_count + 1,
						 sizeof(*names));
	size_t n = old->count;

	if (!veil || !names)
		return vt_plan_nomem(err);
	memcpy(names, old->names, n * sizeof(*names));
	for (size_t i = 0; i < build->guard_count; i++) {
		bool known = guards[i].kind != VT_GUARD_NAME || guards[i].ino ||
			     guards[i].path[0] != '.' || strchr(guards[i].path, '/');

		for (size_t j = 0; !known && j < old->count; j++)
			known = strcmp(names[j].path, guards[i].path) == 0;
		if (known)
			continue;
		names[n++] = (struct vt_veiled){ VT_VEILED_EMPTY, guards[i].path, 0555 };
		guards[i].closed = true;
	}
	*veil = *old;
	veil->names = names;
	veil->count = n;
	p->plan->veiled_count += n - old->count;
	build->veil = veil;
	return 0;
}

/* ---- all ----------------------------------------------------------------------------------- */

static int list_homes(struct protecting *p, char *const *environ, struct vt_err *err)
{
	enum { PASSWD_BYTES = 64 << 10, FIELD_OF_HOME = 5 };
	char *text = vt_arena_alloc(p->arena, PASSWD_BYTES);
	size_t room = 0, count = 0;
	const char **homes = NULL;
	ssize_t len;

	if (!text)
		return vt_plan_nomem(err);
	for (; environ && *environ; environ++)
		if (strncmp(*environ, "HOME=/", 6) == 0 && (*environ)[6]) {
			homes = grow(p, homes, count, &room, sizeof(*homes));
			if (homes)
				homes[count++] = vt_arena_dup(p->arena, *environ + 5);
		}
	len = p->host->read_file ? p->host->read_file(p->host, "/etc/passwd", text, PASSWD_BYTES)
				 : 0;
	text[len > 0 ? len : 0] = '\0';
	for (char *line = text, *end; *line && !p->failed; line = end) {
		end = line + strcspn(line, "\n");
		end += *end == '\n';
		for (int i = 0; i < FIELD_OF_HOME && line < end; i++) {
			line += strcspn(line, ":\n");
			line += *line == ':';
		}
		size_t size = line < end ? strcspn(line, ":\n") : 0;
		bool person = strncmp(line, "/home", 5) == 0 || strncmp(line, "/root", 5) == 0 ||
			      strncmp(line, "/Users", 6) == 0;

		if (size < 2 || !person)
			continue;
		const char **more = grow(p, homes, count, &room, sizeof(*homes));

		if (more) {
			homes = more;
			homes[count++] = vt_arena_dupn(p->arena, line, size);
		}
	}
	for (size_t i = 0; i < count; i++) {
		struct vt_way way;

		p->failed |= !homes || !homes[i];
		/* A home is often reached by a link. */
		if (!p->failed && find_way(p, homes[i], &way))
			homes[i] = way.real;
	}
	p->homes = homes;
	p->home_count = count;
	return p->failed ? vt_plan_nomem(err) : 0;
}

/* The host paths of all grants for writing, of which the tree of the root keeps only the outer. */
static int list_opened(struct protecting *p, struct vt_err *err)
{
	const struct vt_grants *writes = &p->policy->files.write;
	const char **paths = vt_arena_array(p->arena, writes->count + 1, sizeof(*paths));

	if (!paths)
		return vt_plan_nomem(err);
	for (size_t i = 0; i < writes->count && writes->count > 1; i++) {
		struct vt_way way;
		int r = vt_way_find(p->host, p->arena, writes->items[i].from,
				    writes->items[i].origin, &way, err);

		if (r < 0)
			return r;
		paths[i] = way.real;
		p->opened_count++;
	}
	p->opened = paths;
	return 0;
}

static bool is_off(const struct vt_policy *policy)
{
	return vt_policy_gave(policy, VT_FIELD_FILES_PROTECT) && !policy->files.protect.count;
}

static const struct vt_grant *read_in_written(const struct vt_policy *policy)
{
	for (size_t i = 0; i < policy->files.read.count; i++)
		for (size_t j = 0; j < policy->files.write.count; j++) {
			const struct vt_grant *read = &policy->files.read.items[i];
			const struct vt_grant *write = &policy->files.write.items[j];

			if (vt_path_lies_in(read->from, write->from) &&
			    strcmp(read->from, write->from) != 0)
				return read;
		}
	return NULL;
}

/* Landlock's rules only add to each other, and nothing can be mounted. */
static int decide_bare(struct vt_plan *plan, const struct vt_policy *policy, struct vt_err *err)
{
	const struct vt_grant *read = read_in_written(policy);
	const bool lax = policy->require == VT_REQUIRE_BEST_EFFORT;
	const bool named = policy->files.protect.count;

	if (!policy->files.write.count)
		return 0;
	if (read && !lax)
		return vt_fail(
			err, VT_STEP_PLAN, EPERM,
			"refused: %s: '%s' lies in a folder granted for writing, and cannot be "
			"kept from being written without a mount namespace, which cannot be had "
			"here; `vitro doctor` says why; grant the folders beside it for writing, "
			"or --set require=best-effort",
			read->origin, read->from);
	if (!is_off(policy) && (named || policy->require == VT_REQUIRE_STRICT) && !lax)
		return vt_fail(
			err, VT_STEP_PLAN, EPERM,
			"refused: files.protect: names in folders granted for writing cannot be "
			"kept as they are without a mount namespace, which cannot be had here%s; "
			"`vitro doctor` says why; %s",
			named ? "" : ", and require is strict",
			named ? "--set require=best-effort would run it"
			      : "--protect none, or --set require=full, would run it");
	if (!is_off(policy) || read)
		plan->protect_note =
			read ? "files: nothing can be mounted here, so what is granted for reading "
			       "inside a folder for writing can be written, and so can what "
			       "programs "
			       "of the host run or trust there (.git/config, .envrc, ...)"
			     : "files: nothing can be mounted here, so a call can change what "
			       "programs of the host run or trust in folders granted for writing "
			       "(.git/config, .git/hooks, .envrc, ...): look before you use git or "
			       "an "
			       "editor there";
	return 0;
}

int vt_protect_decide(struct vt_plan *plan, const struct vt_policy *policy,
		      const struct vt_host *host, char *const *environ, struct vt_err *err)
{
	struct protecting p = {
		.plan = plan, .policy = policy, .host = host, .arena = plan->arena
	};
	size_t size = plan->build_count * sizeof(*plan->builds);
	int r = 0;

	if (!policy->files.write.count)
		return 0;
	if (plan->bare)
		return decide_bare(plan, policy, err);
	struct vt_build *builds = vt_arena_alloc(plan->arena, size + 1);

	if (!builds)
		return vt_plan_nomem(err);
	memcpy(builds, plan->builds, size);
	plan->builds = builds;
	if (!is_off(policy)) {
		r = list_homes(&p, environ, err);
		if (r == 0)
			r = list_opened(&p, err);
	}
	for (size_t i = 0; r == 0 && i < plan->build_count; i++) {
		if (!vt_build_is_written(&builds[i]) || !S_ISDIR(builds[i].mode))
			continue;
		p.build = &builds[i];
		p.found = NULL;
		p.folders = NULL;
		p.configs = NULL;
		p.git_folders = NULL;
		p.nested = false;
		p.closed = NULL;
		p.looks = 0;
		p.count = p.room = p.folder_count = p.folder_room = 0;
		p.config_count = p.config_room = p.config_read = 0;
		p.nested_count = p.way_count = 0;
		p.git_folder_count = p.git_folder_room = p.git_looked = 0;
		keep_places(&p);
		if (!is_off(policy))
			look_everywhere(&p);
		if (!p.count && !p.failed)
			continue;
		r = list_guards(&p, &builds[i], err);
		if (r == 0 && builds[i].veil && builds[i].veil->work >= 0)
			r = place_missing(&p, &builds[i], err);
	}
	return r;
}
