/** The median of measured values. If there are two middle ones, it is the upper one. */
export const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((left, right) => left - right)[Math.floor(values.length / 2)] ?? Number.NaN
