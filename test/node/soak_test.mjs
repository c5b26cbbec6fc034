// SPDX-License-Identifier: Apache-2.0
// The first of the calls that make soak does.

import { checkEqual, main, testNode as test } from '../lib/vitrotest.mjs';
import { soak } from './soak.mjs';

test('calls with random work end as in a plain Node, and nothing grows', async () => {
	const { wrong, grown, seed } = await soak(140);
	checkEqual([wrong, grown], [[], []], `what is wrong, and what has grown, of seed ${seed}`);
});

await main();
