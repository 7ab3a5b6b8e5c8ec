/** Returns the median of measured values. If two values are in the middle, the median is the greater one. */
export const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? Number.NaN
