/**
 * Whether everything runs as in the gate: with both databases wherever there is a choice, all random attacks of each
 * test, the benchmarks and the long programs.
 */
export const isFull: boolean = process.env["ACME_TEST_FULL"] === "true"
