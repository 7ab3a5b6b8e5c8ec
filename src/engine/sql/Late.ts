/** The cause of a failure: the time for a read, or for the wait for a connection, was up. */
export class Late extends Error {}
