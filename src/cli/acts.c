/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/acts.h"

#define READ       VT_TRY_READ
#define WRITE      VT_TRY_WRITE
#define NAMESPACES VT_TRY_NAMESPACES
#define PROFILE    VT_TRY_PROFILE

#define SEEN   "the existence of other processes can be seen"
#define SLOWED "the priorities of other processes can be changed"
#define BURST  "the private /tmp can pass its limit before that is seen"

static const struct {
	const char *name, *mechanism;
} properties[VT_TESTED_COUNT] = {
	[VT_TESTED_PROCESSES] = { "processes", NULL },
	[VT_TESTED_FILES] = { "files", NULL },
	[VT_TESTED_NETWORK] = { "network", NULL },
	[VT_TESTED_SYSCALLS] = { "syscalls", NULL },
	[VT_TESTED_MEMORY] = { "memory", NULL },
	[VT_TESTED_TMP] = { "tmp", "tmpfs" },
	[VT_TESTED_FILE_SIZE] = { "file_size", "rlimit" },
	[VT_TESTED_OPEN_FILES] = { "open_files", "rlimit" },
	[VT_TESTED_PIDS] = { "pids", NULL },
	[VT_TESTED_CPU_TIME] = { "cpu_time", NULL },
	[VT_TESTED_CPUS] = { "cpus", NULL },
};

const char *vt_tested_name(enum vt_tested property)
{
	return properties[property].name;
}

const char *vt_tested_mechanism(enum vt_tested property)
{
	return properties[property].mechanism;
}

/* clang-format off */
#define PROCESSES(...)  { VT_TESTED_PROCESSES, __VA_ARGS__ }
#define FILES(...)      { VT_TESTED_FILES, __VA_ARGS__ }
#define NETWORK(...)    { VT_TESTED_NETWORK, __VA_ARGS__ }
#define SYSCALLS(...)   { VT_TESTED_SYSCALLS, __VA_ARGS__ }
#define MEMORY(act, args, ...) \
	{ VT_TESTED_MEMORY, act, args, .set = "limits.memory_mb=24", __VA_ARGS__ }

const struct vt_try vt_tries[] = {
	PROCESSES("send_signal", "{victim}"),
	PROCESSES("signal_group", "{victim}"),
	/* lost: a keeper that can be killed takes the call along, and stay_unkept tells what is left */
	PROCESSES("kill_parent", "", VT_TRY_CHILD, .ends = "lost"),
	PROCESSES("stay_behind", "{write}", WRITE | VT_TRY_AFTER),
	PROCESSES("stay_unkept", "{write}", WRITE | VT_TRY_AFTER | VT_TRY_CHILD, .ends = "lost"),
	PROCESSES("outstay", "600", .set = "limits.wall_ms=200", .ends = "timeout"),
	PROCESSES("trace", "{victim}"),
	PROCESSES("read_memory", "{victim}"),
	PROCESSES("open_mem", "{victim}"),
	PROCESSES("read_environ", "{victim}"),
	PROCESSES("find_secret", "{word}"),
	PROCESSES("read_maps", "{victim}"),
	PROCESSES("list_descriptors", "{victim}"),
	PROCESSES("steal_descriptor", "{victim}"),
	PROCESSES("enter_namespace", "{victim}"),
	PROCESSES("change_limits", "{victim}"),
	PROCESSES("tune_by_proc", "{victim}"),
	PROCESSES("change_priority", "{victim}", .weaker = SLOWED),
	PROCESSES("change_affinity", "{victim}", .weaker = SLOWED),
	PROCESSES("change_scheduler", "{victim}", .weaker = SLOWED),
	PROCESSES("change_io_priority", "{victim} 1", .weaker = SLOWED),
	PROCESSES("open_pidfd", "{victim}", .weaker = SEEN),
	PROCESSES("see_processes", "{word}", .weaker = SEEN),
	PROCESSES("raise_capabilities", "", NAMESPACES),
	PROCESSES("become_root", "", NAMESPACES),

	FILES("read_absolute", "{secret}/file", 0, VT_BY_READ),
	FILES("read_dotdot", "{secret}/file", 0, VT_BY_READ),
	FILES("read_symlink", "{write} {secret}/file", WRITE, VT_BY_READ),
	FILES("read_symlink_dotdot", "{write} {secret}/file", WRITE, VT_BY_READ),
	FILES("read_hardlink", "{write} {secret}/file", WRITE, VT_BY_READ),
	FILES("read_proc_root", "{secret}/file", 0, VT_BY_READ),
	FILES("read_leaked_cwd", "file"),
	FILES("read_proc_self_cwd", "file"),
	FILES("read_leaked_folder", "{leak} file"),
	FILES("read_leaked_folder_up", "{leak} secret/file"),
	FILES("leaked_descriptor", ""),
	FILES("write_new", "{secret}", 0, VT_BY_WRITE, .label = "in a folder that is not granted"),
	FILES("write_new", "{read}", READ, VT_BY_WRITE),
	FILES("write_over", "{read}", READ, VT_BY_WRITE),
	FILES("write_truncate", "{read}", READ, VT_BY_WRITE),
	FILES("write_mode", "{read}", READ, VT_BY_WRITE),
	FILES("write_times", "{read}", READ, VT_BY_WRITE),
	FILES("mode_absolute", "{secret}/file", 0, VT_BY_WRITE),
	FILES("mode_symlink", "{write} {secret}/file", WRITE, VT_BY_WRITE),
	FILES("mode_descriptor", "{read}/file", READ | WRITE, VT_BY_WRITE),
	FILES("owner_absolute", "{secret}/file", 0, VT_BY_WRITE),
	FILES("owner_descriptor", "{read}/file", READ, VT_BY_WRITE),
	FILES("mode_race", "{write} {read}", READ | WRITE, VT_BY_WRITE),
	FILES("write_xattr", "{read}", READ, VT_BY_WRITE),
	FILES("write_unlink", "{read}", READ, VT_BY_WRITE),
	FILES("write_fifo", "{read}/pipe", READ, VT_BY_WRITE,
	      .weaker = "named pipes in folders for reading can be written to"),
	FILES("write_rename_out", "{read} {write}", READ | WRITE, VT_BY_WRITE),
	FILES("write_hardlink", "{read} {write}", READ | WRITE, VT_BY_WRITE),
	FILES("write_root", "/", 0, VT_BY_WRITES, .outside = "{write}"),
	FILES("make_device", "{write}", WRITE),
	FILES("make_block_device", "{write}", WRITE),
	FILES("give_away", "{write}", WRITE),
	FILES("plant_capability", "{write}", WRITE | NAMESPACES),
	FILES("open_by_handle", "{read}/file", READ),
	FILES("mount_new", "", NAMESPACES),
	FILES("clone_tree", "", NAMESPACES),
	FILES("change_root", "", NAMESPACES),
	FILES("see_file", "{secret}/file", 0, VT_BY_READ,
	      .weaker = "the names and sizes of other files can be seen"),
	FILES("open_proc_global", "", .weaker = "what the whole machine does can be read in /proc"),

	NETWORK("tcp4", "{tcp4}", 0, VT_BY_HOST),
	NETWORK("tcp4_zero", "{tcp4}", 0, VT_BY_HOST),
	NETWORK("tcp6", "{tcp6}", 0, VT_BY_HOST),
	NETWORK("tcp6_mapped", "{tcp4}", 0, VT_BY_HOST),
	NETWORK("mptcp", "{tcp4}", 0, VT_BY_HOST),
	NETWORK("fast_open", "{tcp4}", 0, VT_BY_HOST),
	NETWORK("udp4", "{udp4}", 0, VT_BY_HOST),
	NETWORK("bind_any", "", 0, VT_BY_NETWORK),
	NETWORK("abstract", "{abstract}"),
	NETWORK("unix_path", "{read}/socket", READ),
	NETWORK("unix_pair", "{read}/datagrams", READ),
	NETWORK("raw4", "", NAMESPACES),
	NETWORK("packet", "", NAMESPACES),
	NETWORK("vsock", ""),
	NETWORK("alg", ""),
	NETWORK("netlink", "", .weaker = "the network's settings can be asked for"),

	SYSCALLS("use_io_uring", ""),
	SYSCALLS("use_bpf", ""),
	SYSCALLS("use_perf", ""),
	SYSCALLS("use_userfaultfd", "", PROFILE),
	SYSCALLS("use_vmsplice", ""),
	SYSCALLS("change_ldt", "", PROFILE),
	SYSCALLS("change_personality", "0x0400000", PROFILE),
	SYSCALLS("call_i386", ""),
	SYSCALLS("call_x32", ""),
	SYSCALLS("call_arm32", ""),
	SYSCALLS("add_key", ""),
	SYSCALLS("compare_processes", "", PROFILE),
	SYSCALLS("unshare_user", ""),
	SYSCALLS("unshare_others", "", NAMESPACES),
	SYSCALLS("clone_user", ""),
	SYSCALLS("clone3_user", ""),
	SYSCALLS("read_kernel_log", "", PROFILE),
	SYSCALLS("hold_lease", "{read}/file", READ),
	SYSCALLS("set_hint", "{read}/file", READ),
	SYSCALLS("attach_filter", ""),
	SYSCALLS("ask_encryption", "{read} 0xc0506617", READ, .label = "to add a key"),
	SYSCALLS("ask_encryption", "{read} 0xc0406618", READ, .label = "to remove a key"),
	SYSCALLS("setuid_chmod", "{write}", WRITE),
	SYSCALLS("setgid_chmod", "{write}", WRITE),
	SYSCALLS("setuid_fchmodat", "{write}", WRITE),
	SYSCALLS("setuid_openat", "{write}", WRITE),
	SYSCALLS("setuid_mknodat", "{write}", WRITE),
	SYSCALLS("setuid_tmpfile", "{write}", WRITE),

	MEMORY("take_heap", "64", .ends = "memory_limit"),
	MEMORY("take_together", "66 6", .ends = "memory_limit"),
	MEMORY("take_memfd", "64", .ends = "memory_limit"),
	/* lost: where no cgroup counts, what is hidden cannot be watched, and the call ends */
	MEMORY("take_memfd_undumpable", "64", .flags = VT_TRY_SHOWN, .ends = "memory_limit lost"),
	{ VT_TESTED_MEMORY, "take_disk", "48 .", VT_TRY_TMPFS, .outside = "48 {write}",
	  .ends = "memory_limit",
	  .set = "limits.memory_mb=24 limits.tmp_mb=256 files.cwd=/tmp",
	  .weaker = "files in the private /tmp are not counted as memory" },

	/* What stays above the limit is ended; a burst is stopped by a tmpfs alone. */
	{ VT_TESTED_TMP, "hold_disk", "12 2 .", .outside = "12 0 {write}", .ends = "memory_limit",
	  .set = "limits.tmp_mb=4 files.cwd=/tmp" },
	{ VT_TESTED_TMP, "take_disk", "12 .", .outside = "12 {write}", .ends = "memory_limit",
	  .set = "limits.tmp_mb=4 files.cwd=/tmp", .weaker = BURST },
	{ VT_TESTED_TMP, "take_inodes", "1600 .", .outside = "1600 {write}",
	  .set = "limits.tmp_mb=1 files.cwd=/tmp",
	  .weaker = "the number of files in the private /tmp is not bounded" },
	{ VT_TESTED_FILE_SIZE, "take_file", "3 {write}", WRITE, .set = "limits.file_mb=1" },
	{ VT_TESTED_OPEN_FILES, "take_descriptors", "300", .set = "limits.open_files=64" },
	{ VT_TESTED_PIDS, "take_processes", "120", .set = "limits.pids=40" },
	{ VT_TESTED_PIDS, "take_threads", "120", .set = "limits.pids=40" },
	{ VT_TESTED_CPU_TIME, "burn", "400 8000", .set = "limits.cpu_ms=100", .ends = "cpu_limit" },
	{ VT_TESTED_CPUS, "burn", "150 600", VT_TRY_AGAIN, .set = "limits.cpus=0.1" },
};
/* clang-format on */

const size_t vt_try_count = sizeof(vt_tries) / sizeof(vt_tries[0]);
