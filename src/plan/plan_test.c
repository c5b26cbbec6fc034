/* SPDX-License-Identifier: Apache-2.0 */
/* What no golden text shows of a plan. */
#include "plan/hosts_test.h"

/* What the command brings along is what the search has seen, or there is no plan. */
static void test_replaced(void **state)
{
	static char name[] = "x", *argv[] = { name, NULL }, *none[] = { NULL };
	struct vt_need need = { "/srv/data", 1, inode_of(&root_v1, "/srv/data") };
	const struct vt_command command = { "/srv/data/x", &need, 1, NULL, 0 };
	const struct vt_request request = { &command, argv, none };
	struct vt_policy *policy;
	struct vt_plan *plan;
	struct vt_err err;

	(void)state;
	assert_int_equal(vt_policy_new(&policy, &err), 0);
	assert_int_equal(vt_plan_make(policy, &root_v1, &request, &plan, &err), 0);
	vt_plan_free(plan);
	/* Another file by that name, and a link that leads elsewhere by now. */
	need.ino++;
	assert_int_equal(vt_plan_make(policy, &root_v1, &request, &plan, &err), -ESTALE);
	assert_non_null(strstr(err.what, "'/srv/data': replaced while it was being looked at"));
	need = (struct vt_need){ "/home/ann/to-data", 1, need.ino - 1 };
	assert_int_equal(vt_plan_make(policy, &root_v1, &request, &plan, &err), 0);
	vt_plan_free(plan);
	need.path = "/home/ann/to-etc";
	assert_int_equal(vt_plan_make(policy, &root_v1, &request, &plan, &err), -ESTALE);
	vt_policy_free(policy);
}

/* What each cell of a pool has for itself, where it is bare, has its place in the plan. */
static void test_pooled_bare(void **state)
{
	static const char scratch[] = "/tmp/vitro-pool-000000000000";
	const struct vt_request request = { .pooled = true, .cells = 100, .name = "pool" };
	struct vt_policy *policy;
	struct vt_plan *plan;
	struct vt_err err;
	size_t named = 0;

	(void)state;
	assert_int_equal(vt_policy_new(&policy, &err), 0);
	assert_int_equal(vt_plan_make(policy, &bare_user, &request, &plan, &err), 0);
	assert_true(plan->bare && plan->pooled && plan->cwd_private);
	assert_string_equal(plan->scratch, scratch);
	for (char **variable = plan->envp; *variable; variable++)
		named += strcmp(strchr(*variable, '=') + 1, scratch) == 0;
	assert_int_equal(named, 2);
	assert_int_equal(plan->rlimits[0].resource, RLIMIT_NPROC);
	assert_int_equal(plan->rlimits[0].limit.rlim_cur, plan->pids + 1 + bare_user.tasks + 200);
	assert_non_null(strstr(plan->holdings[VT_PROPERTY_PIDS].note, "the pool's other cells"));
	assert_string_equal(plan->holdings[VT_PROPERTY_PROCESSES].mechanism, "landlock-scope");
	vt_plan_free(plan);
	/* With an id of its own, others do not count. */
	assert_int_equal(vt_plan_make(policy, &bare_root_old, &request, &plan, &err), 0);
	assert_int_equal(plan->rlimits[0].limit.rlim_cur, plan->pids + 1);
	vt_plan_free(plan);
	vt_policy_free(policy);
}

/* Whoever had more than unix sockets in it, or could be reached in it by the next, leaves it to
 * none. */
static void test_kept_networks(void **state)
{
	static const struct {
		const struct vt_host *host;
		const char *network;
		bool pooled, kept;
	} cases[] = {
		{ &user_v2, "none", true, true },   { &user_v2, "none", false, false },
		{ &user_v2, "host", true, false },  { &user_v2, "loopback", true, false },
		{ &user_old, "none", true, false }, { &bare_user, "none", true, false },
	};
	struct vt_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct vt_request request = { .pooled = cases[i].pooled,
						    .cells = 4,
						    .name = "pool" };
		struct vt_policy *policy;
		struct vt_plan *plan;

		assert_int_equal(vt_policy_new(&policy, &err), 0);
		assert_int_equal(
			vt_policy_set(policy, "network", cases[i].network, NULL, "-", &err), 0);
		assert_int_equal(vt_plan_make(policy, cases[i].host, &request, &plan, &err), 0);
		assert_int_equal(plan->keeps_networks, cases[i].kept);
		vt_plan_free(plan);
		vt_policy_free(policy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_pooled_bare),
		cmocka_unit_test(test_kept_networks),
	};

	return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
