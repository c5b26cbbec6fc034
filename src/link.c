/* SPDX-License-Identifier: Apache-2.0 */
/* An empty program: that it links shows that a layer needs none below it. */
int main(void)
{
	return 0;
}
