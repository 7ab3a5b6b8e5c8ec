/**
 * How long to wait for a program that does not answer. Only a program that hangs may reach this limit, because the run
 * time of a program depends on how busy the machine is.
 */
export const patienceMs = 300_000
