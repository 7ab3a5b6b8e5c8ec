/**
 * How long to wait for a program that does not answer. The run time of a program depends on how busy the machine is, so
 * only a program that hangs may reach this limit.
 */
export const patienceMs = 300_000
