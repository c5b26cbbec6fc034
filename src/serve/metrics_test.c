/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "serve/metrics.h"

static void assert_line(const struct vt_str *text, const char *line)
{
	char whole[256];

	(void)snprintf(whole, sizeof(whole), "\n%s\n", line);
	if (!strstr(text->text, whole))
		fail_msg("'%s' is not in: %s", line, text->text);
}

/* A time that is a bound is below it; buckets count all before them. */
static void test_histogram(void **state)
{
	struct vt_metrics metrics = { 0 };
	const struct vt_metrics_now now = { 0 };
	struct vt_str text;

	(void)state;
	vt_metrics_call(&metrics, VT_STATUS_OK, 100000);
	vt_metrics_call(&metrics, VT_STATUS_OK, 100001);
	vt_metrics_call(&metrics, VT_STATUS_TIMEOUT, 3600000000000);
	vt_metrics_call(&metrics, VT_STATUS_LOST, -5); /* a clock that cannot be */
	vt_str_init(&text);
	vt_metrics_text(&metrics, &now, &text);
	assert_true(vt_str_ok(&text));
	assert_line(&text, "vitro_call_seconds_bucket{le=\"0.0001\"} 2");
	assert_line(&text, "vitro_call_seconds_bucket{le=\"0.00025\"} 3");
	assert_line(&text, "vitro_call_seconds_bucket{le=\"30\"} 3");
	assert_line(&text, "vitro_call_seconds_bucket{le=\"+Inf\"} 4");
	assert_line(&text, "vitro_call_seconds_count 4");
	assert_line(&text, "vitro_call_seconds_sum 3600.000200001");
	assert_line(&text, "vitro_calls_total{status=\"ok\"} 2");
	assert_line(&text, "vitro_calls_total{status=\"timeout\"} 1");
	assert_line(&text, "vitro_calls_total{status=\"crashed\"} 0");
	vt_str_done(&text);
}

static void test_gauges(void **state)
{
	struct vt_metrics metrics = { .clients = 9, .denied = { [VT_DENIED_LIMIT] = 3 } };
	const struct vt_metrics_now now = {
		.cells = { .ready = 1,
			   .refilling = 2,
			   .live = 3,
			   .waiting = 4,
			   .cells_made = 5,
			   .cold_calls = 6 },
		.clients = 7,
		.waiting = 8,
	};
	struct vt_str text;

	(void)state;
	vt_str_init(&text);
	vt_metrics_text(&metrics, &now, &text);
	assert_line(&text, "vitro_cells_ready 1");
	assert_line(&text, "vitro_cells_refilling 2");
	assert_line(&text, "vitro_cells_live 3");
	assert_line(&text, "vitro_calls_waiting 12");
	assert_line(&text, "vitro_refills_total 5");
	assert_line(&text, "vitro_cold_calls_total 6");
	assert_line(&text, "vitro_clients 7");
	assert_line(&text, "vitro_clients_total 9");
	assert_line(&text, "vitro_denials_total{what=\"limit\"} 3");
	vt_str_done(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_histogram),
		cmocka_unit_test(test_gauges),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
