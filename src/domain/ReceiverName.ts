/** The kinds of receivers to which the rows of the audit trail can be pushed. There is at most one of each kind. */
export const receiverNames = ["syslog", "http"] as const

/** The name of a receiver. */
export type ReceiverName = (typeof receiverNames)[number]
