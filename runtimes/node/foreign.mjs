// SPDX-License-Identifier: Apache-2.0
// Values of other languages that have no counterpart here.

import { Malformed, show, viewBytes } from './plain.mjs';

const NDIM_MAX = 32;

/**
 * A value of another language that has no counterpart here: it is written again as what it was. `type` is its name
 * without the $: 'decimal', 'uuid', 'complex', 'date', 'time', 'datetime' (one without an offset), 'timedelta',
 * 'ndarray', 'npscalar'. `value` is what docs/values.md has for it; of the last two it has `data` in place of `buffer`.
 */
export class Foreign {
	constructor(type, value) {
		if (!foreignCheckers.has(type))
			throw new Malformed(`${show(type)} is not the name of a foreign type`);
		this.type = type;
		this.value = foreignCheckers.get(type)(value);
		Object.freeze(this);
	}

	toString() {
		return typeof this.value === 'string' ? this.value : `${this.type} ${JSON.stringify(this.value)}`;
	}

	toJSON() {
		return this.value;
	}
}

const DTYPE = /^[<>|](?:b1|[iu][1248]|f(?:2|4|8|16)|c(?:8|16|32)|([SU])[1-9][0-9]{0,8}|[Mm]8(?:\[(?:[1-9][0-9]{0,5})?(?:[YMWDhms]|ms|us|ns|ps|fs|as)\])?)$/;
const DECIMAL = /^-?(?:[0-9]+(?:\.[0-9]*)?(?:E[+-]?[0-9]{1,20})?|Infinity|s?NaN[0-9]*)$/;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const DAY = '([+-]?[0-9]{4,6})-([0-9]{2})-([0-9]{2})';
const CLOCK = '([0-9]{2}):([0-9]{2}):([0-9]{2})(?:\\.([0-9]{1,6}))?(Z|[+-][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\\.[0-9]{6})?)?)?';
const DATE = new RegExp(`^${DAY}$`);
const TIME = new RegExp(`^${CLOCK}$`);
export const MOMENT = new RegExp(`^${DAY}T${CLOCK}$`);
export const TEXT_MAX = 64; // of dates and times

const foreignCheckers = new Map([
	['complex', checkComplex],
	['date', (text) => (checkDay(matchText(DATE, text, TEXT_MAX)), text)],
	['time', (text) => (checkClock(matchText(TIME, text, TEXT_MAX), 1), text)],
	['datetime', checkMoment],
	['timedelta', checkSpan],
	['decimal', (text) => (matchText(DECIMAL, text), text)],
	['uuid', (text) => (matchText(UUID, text), text)],
	['ndarray', checkArray],
	['npscalar', checkScalar],
]);

export function matchText(pattern, body, max = Infinity) {
	const match = typeof body === 'string' && body.length <= max ? pattern.exec(body) : null;
	if (match === null)
		throw new Malformed(`${show(body)} is not written as it should be`);
	return match;
}

/** Milliseconds of a day that there is. */
export function checkDay([text, year, month, day]) {
	const date = new Date(0);
	date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
	if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day) || year === '0000')
		throw new Malformed(`${show(text)} is not written as it should be`);
	return date.getTime();
}

/** Milliseconds of a time that there is, in UTC where it has an offset; what is below a millisecond is dropped. */
export function checkClock(match, from) {
	const [hour, minute, second] = match.slice(from, from + 3).map(Number);
	const [, sign, hours, minutes, seconds] = /^([+-])([0-9]{2}):([0-9]{2})(?::([0-9]{2}))?/.exec(match[from + 4] ?? '') ?? [];
	if (hour > 23 || minute > 59 || second > 59 || hours > 23 || minutes > 59 || seconds > 59)
		throw new Malformed(`${show(match[0])} is not written as it should be`);
	const offset = sign ? (sign === '-' ? -1 : 1) * (hours * 3600 + minutes * 60 + Number(seconds ?? 0)) : 0;
	const fraction = Number((match[from + 3] ?? '').padEnd(3, '0').slice(0, 3));
	return (hour * 3600 + minute * 60 + second - offset) * 1000 + fraction;
}

function checkMoment(text) {
	const match = matchText(MOMENT, text, TEXT_MAX);
	checkDay(match);
	checkClock(match, 4);
	return text;
}

function checkComplex(parts) {
	if (!Array.isArray(parts) || parts.length !== 2 || !parts.every((part) => typeof part === 'number'))
		throw new Malformed('two numbers are wanted');
	return Object.freeze([...parts]);
}

function checkSpan(parts) {
	if (!Array.isArray(parts) || parts.length !== 3 || !parts.every(Number.isSafeInteger))
		throw new Malformed('three integers are wanted');
	return Object.freeze([...parts]);
}

function sizeItem(dtype) {
	const match = matchText(DTYPE, dtype);
	return Number(/[0-9]+/.exec(dtype)[0]) * (match[1] === 'U' ? 4 : 1);
}

export function checkArray({ dtype, shape, order, data }) {
	const size = sizeItem(dtype);
	if (!Array.isArray(shape) || shape.length > NDIM_MAX || (order !== 'C' && order !== 'F')
		|| !shape.every((length) => Number.isSafeInteger(length) && length >= 0))
		throw new Malformed("an array's shape is a list of sizes");
	const bytes = checkData(dtype, data);
	if (shape.reduce((count, length) => count * length, size) !== bytes.byteLength)
		throw new Malformed("an array's shape and its buffer do not agree");
	return Object.freeze({ dtype, shape: Object.freeze([...shape]), order, data: bytes });
}

export function checkScalar({ dtype, data }) {
	if (sizeItem(dtype) !== checkData(dtype, data).byteLength)
		throw new Malformed("a scalar's type and its buffer do not agree");
	return Object.freeze({ dtype, data });
}

function checkData(dtype, data) {
	if (!ArrayBuffer.isView(data))
		throw new Malformed("an array's data are bytes");
	if (dtype === '|b1' && viewBytes(data).some((byte) => byte > 1))
		throw new Malformed('a bool is neither true nor false');
	return data;
}
