/* SPDX-License-Identifier: Apache-2.0 */
/* An object that lies to the supervisor gains nothing by it. argv: vitro, ..., the object. */
#include "library_test.h"

static const char *object;

static void test_zygote_lies(void **state)
{
	const struct vitro_tool tools[] = {
		{ .name = "work", .object = object, .symbol = "work" },
		{ 0 },
	};

	(void)state;
	vitro_toolhost *host = host_of(tools, NULL);
	int apart = has_namespaces(host);

	/* Without a hull its constructor has the caller's rights, and needs no lies. */
	(void)usleep(2000000); /* it has said all that it has to say */
	for (int i = 0; apart && i < 20; i++)
		assert_value(host, "work", NULL, "1");
	vitro_toolhost_free(host);
	if (!apart)
		SKIP("there is no hull here");
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_zygote_lies) };

	if (argc < 6 || setenv("VITRO_BINARY", argv[1], 1) < 0)
		return 2;
	object = argv[5];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
