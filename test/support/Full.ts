/**
 * Whether everything is run, as the gate does: both databases wherever there is a choice, as many random attacks as a
 * test was written with, the benchmarks and the long programs.
 */
export const isFull: boolean = process.env["ACME_TEST_FULL"] === "true"
