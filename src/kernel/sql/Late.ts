/** The cause of a failure that came because its time was up: of a read, or of the wait for a connection. */
export class Late extends Error {}
