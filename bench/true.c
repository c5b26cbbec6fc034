/* SPDX-License-Identifier: Apache-2.0 */
/* The cheapest program there is: static, and it does nothing. */
int main(void)
{
	return 0;
}
