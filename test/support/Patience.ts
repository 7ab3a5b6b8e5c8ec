/**
 * How long anything waits for a program that answers nothing. How long a program takes says how busy the machine is,
 * so only one that hangs may ever meet this.
 */
export const patienceMs = 300_000
